//! Operations, which run beyond the call that submitted them, and the memory that they may hold.
use crate::native::{self, call, milliseconds, Core, Hold, Text};
use crate::status::{Result, Status};
use crate::sys;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that operations may hold; closing it then is `BUSY`.
pub struct Memory {
    pub(crate) core: Arc<Core>,
}

fn end_memory(handle: i64) -> Result<()> {
    call("memory close", |t| unsafe { sys::kvtf_memory_destroy(handle, t.ptr(), Text::LEN) }).map(|_| ())
}

impl Memory {
    /// Allocates zeroed bytes.
    pub fn new(bytes: usize) -> Result<Memory> {
        let core = Core::create("memory", end_memory, vec![], |_, t| unsafe {
            sys::kvtf_memory_create(i64::try_from(bytes).unwrap_or(i64::MAX), t.ptr(), Text::LEN)
        })?;
        Ok(Memory { core })
    }

    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    pub fn write(&self, offset: usize, data: &[u8]) -> Result<()> {
        self.core
            .on("memory write", |h, t| unsafe {
                sys::kvtf_memory_write(h, offset as i64, data.as_ptr(), data.len(), t.ptr(), Text::LEN)
            })
            .map(|_| ())
    }

    pub fn read(&self, offset: usize, buf: &mut [u8]) -> Result<()> {
        self.core
            .on("memory read", |h, t| unsafe {
                sys::kvtf_memory_read(h, offset as i64, buf.as_mut_ptr(), buf.len(), t.ptr(), Text::LEN)
            })
            .map(|_| ())
    }
}

/// What an operation reports when it ends, and a stream's for each part.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// That of the operation.
    pub id: i64,
    pub status: Status,
    /// Of a stream that goes on; `items_ok` parts are in place.
    pub part: bool,
    pub items_ok: u64,
    pub items: u64,
    pub bytes: u64,
}

const COMPLETION_BYTES: usize = sys::KVTF_COMPLETION_BYTES as usize;

impl Completion {
    fn of(bytes: &[u8]) -> Completion {
        Completion {
            id: native::word(bytes, sys::KVTF_COMPLETION_OPERATION),
            status: Status(native::word(bytes, sys::KVTF_COMPLETION_STATUS) as i32),
            part: native::word(bytes, sys::KVTF_COMPLETION_KIND) == sys::KVTF_COMPLETION_PART,
            items_ok: native::word(bytes, sys::KVTF_COMPLETION_ITEMS_OK) as u64,
            items: native::word(bytes, sys::KVTF_COMPLETION_ITEMS) as u64,
            bytes: native::word(bytes, sys::KVTF_COMPLETION_MOVED) as u64,
        }
    }
}

/// Dropping an operation that has not ended cancels it.
pub struct Operation {
    core: Arc<Core>,
    id: i64,
}

fn end_operation(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_operation_release(handle) };
    Ok(())
}

pub(crate) fn submit(holds: Vec<Hold>, function: impl FnOnce(&[Hold], &mut Text) -> i64) -> Result<Operation> {
    let core = Core::create("operation", end_operation, holds, function)?;
    let id = core.hold()?.handle;
    Ok(Operation { core, id })
}

impl Operation {
    /// What the operation's completion carries.
    pub fn id(&self) -> i64 {
        self.id
    }

    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// Waits for the end and returns its status; `TIMEOUT` is this call's deadline or the operation's.
    pub fn wait(&self, timeout: Duration) -> Result<Completion> {
        let mut bytes = [0; COMPLETION_BYTES];
        self.core.on("wait", |h, t| unsafe {
            sys::kvtf_operation_wait(h, milliseconds(timeout), bytes.as_mut_ptr(), bytes.len(), t.ptr(), Text::LEN)
        })?;
        Ok(Completion::of(&bytes))
    }

    /// Ends the operation early: its completion then carries `CANCELLED`.
    pub fn cancel(&self) -> Result<()> {
        self.core.on("cancel", |h, t| unsafe { sys::kvtf_operation_cancel(h, t.ptr(), Text::LEN) }).map(|_| ())
    }

    /// The items' own statuses, once the operation has ended.
    pub fn results(&self) -> Result<Vec<Status>> {
        let packed = self.core.on_output("results", 256, |h, buf, cap, t| unsafe {
            sys::kvtf_operation_results(h, buf, cap, t.ptr(), Text::LEN)
        })?;
        Ok(packed.chunks_exact(4).map(|s| Status(i32::from_le_bytes(s.try_into().expect("4 bytes")))).collect())
    }

    /// What a pull brought for an item, or a part of a stream once it is in place.
    pub fn frame(&self, item: usize) -> Result<Vec<u8>> {
        self.core.on_output("frame", 4096, |h, buf, cap, t| unsafe {
            sys::kvtf_operation_frame(h, item as i64, buf, cap, t.ptr(), Text::LEN)
        })
    }
}

type PollFn = unsafe extern "C" fn(i64, *mut u8, usize, *mut u8, usize) -> i64;

pub(crate) fn poll(core: &Arc<Core>, max: usize, function: PollFn) -> Result<Vec<Completion>> {
    let mut bytes = vec![0; max * COMPLETION_BYTES];
    let len = core.on("poll", |h, t| unsafe { function(h, bytes.as_mut_ptr(), bytes.len(), t.ptr(), Text::LEN) })?;
    Ok(bytes[..len as usize].chunks_exact(COMPLETION_BYTES).map(Completion::of).collect())
}

pub(crate) fn wait_event(core: &Arc<Core>, fd: i32, timeout: Duration) -> Result<bool> {
    let ready = core.on("event wait", |_, t| unsafe {
        sys::kvtf_event_wait(i64::from(fd), milliseconds(timeout), t.ptr(), Text::LEN)
    })?;
    Ok(ready == 1)
}
