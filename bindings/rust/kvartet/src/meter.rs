//! The meter.
use crate::model::Runtime;
use crate::native::{Core, Text};
use crate::status::Result;
use crate::sys;
use std::sync::Arc;
use std::time::Duration;

/// A part of the time to first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part(pub i64);

impl Part {
    pub const QUEUE: Part = Part(sys::KVTF_PART_QUEUE);
    pub const PREFILL: Part = Part(sys::KVTF_PART_PREFILL);
    pub const ENCODE: Part = Part(sys::KVTF_PART_ENCODE);
    pub const TRANSFER: Part = Part(sys::KVTF_PART_TRANSFER);
    pub const DECODE: Part = Part(sys::KVTF_PART_DECODE);
    pub const FIRST_TOKEN: Part = Part(sys::KVTF_PART_FIRST_TOKEN);
    pub const OTHER: Part = Part(sys::KVTF_PART_OTHER);
}

/// A counter of a request or of the meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter(pub i64);

impl Counter {
    pub const BYTES_RAW: Counter = Counter(sys::KVTF_COUNTER_BYTES_RAW);
    pub const BYTES_MOVED: Counter = Counter(sys::KVTF_COUNTER_BYTES_MOVED);
    pub const CHECKSUMS: Counter = Counter(sys::KVTF_COUNTER_CHECKSUMS);
    pub const BLOCKS_HIT: Counter = Counter(sys::KVTF_COUNTER_BLOCKS_HIT);
    pub const BLOCKS_MISSED: Counter = Counter(sys::KVTF_COUNTER_BLOCKS_MISSED);
    pub const TOKENS_PROMPT: Counter = Counter(sys::KVTF_COUNTER_TOKENS_PROMPT);
    pub const TOKENS_OUTPUT: Counter = Counter(sys::KVTF_COUNTER_TOKENS_OUTPUT);
    pub const TOKENS_DRAFTED: Counter = Counter(sys::KVTF_COUNTER_TOKENS_DRAFTED);
    pub const TOKENS_ACCEPTED: Counter = Counter(sys::KVTF_COUNTER_TOKENS_ACCEPTED);
    pub const NONFINITE: Counter = Counter(sys::KVTF_COUNTER_NONFINITE);
}

/// Sums where the time to first token goes.
pub struct Meter {
    core: Arc<Core>,
}

/// One request of a meter, from `Meter::begin` to `end`.
pub struct Request<'m> {
    meter: &'m Meter,
    id: i64,
}

fn end(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_meter_destroy(handle) };
    Ok(())
}

impl Meter {
    pub fn new(runtime: &Runtime) -> Result<Meter> {
        let core = Core::create("meter", end, vec![runtime.core.hold()?], |holds, t| unsafe {
            sys::kvtf_meter_create(holds[0].handle, t.ptr(), Text::LEN)
        })?;
        Ok(Meter { core })
    }

    /// Ends the meter and its open requests.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// What was summed; meter.h has the schema.
    pub fn json(&self) -> Result<String> {
        let text = self.core.on_output("meter json", 4096, |h, buf, cap, t| unsafe {
            sys::kvtf_meter_json(h, buf, cap, t.ptr(), Text::LEN)
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// One sentence: which axis to touch first, and why.
    pub fn advice(&self) -> Result<String> {
        let text = self.core.on_output("advice", 512, |h, buf, cap, t| unsafe {
            sys::kvtf_meter_advice(h, buf, cap, t.ptr(), Text::LEN)
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Adds to a counter of the meter itself.
    pub fn count(&self, counter: Counter, amount: u64) -> Result<()> {
        Request { meter: self, id: 0 }.count(counter, amount)
    }

    /// Starts a request's clock; requests are grouped by way.
    pub fn begin(&self, way: &str) -> Result<Request<'_>> {
        let id = self
            .core
            .on("begin", |h, t| unsafe { sys::kvtf_request_begin(h, way.as_ptr(), way.len(), t.ptr(), Text::LEN) })?;
        Ok(Request { meter: self, id })
    }
}

impl Request<'_> {
    fn on(&self, name: &'static str, function: impl FnOnce(i64, &mut Text) -> i64) -> Result<()> {
        self.meter.core.on(name, function).map(|_| ())
    }

    /// Says what the time from now on belongs to.
    pub fn part(&self, part: Part) -> Result<()> {
        self.on("part", |h, t| unsafe { sys::kvtf_request_part(h, self.id, part.0, t.ptr(), Text::LEN) })
    }

    /// Moves time between parts.
    pub fn attribute(&self, from: Part, to: Part, time: Duration) -> Result<()> {
        let nanoseconds = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        self.on("attribute", |h, t| unsafe {
            sys::kvtf_request_attribute(h, self.id, from.0, to.0, nanoseconds, t.ptr(), Text::LEN)
        })
    }

    pub fn first_token(&self) -> Result<()> {
        self.on("first token", |h, t| unsafe { sys::kvtf_request_first_token(h, self.id, t.ptr(), Text::LEN) })
    }

    pub fn count(&self, counter: Counter, amount: u64) -> Result<()> {
        let amount = i64::try_from(amount).unwrap_or(i64::MAX);
        self.on("count", |h, t| unsafe { sys::kvtf_request_count(h, self.id, counter.0, amount, t.ptr(), Text::LEN) })
    }

    /// Folds the request into its way.
    pub fn end(&self) -> Result<()> {
        self.on("end", |h, t| unsafe { sys::kvtf_request_end(h, self.id, t.ptr(), Text::LEN) })
    }
}
