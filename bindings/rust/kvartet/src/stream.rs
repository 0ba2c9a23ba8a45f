//! Layer-wise streams.
use crate::model::Key;
use crate::native::{milliseconds, Core, Text};
use crate::node::{Node, Peer};
use crate::operation::{self, Operation};
use crate::status::Result;
use crate::sys;
use std::sync::Arc;
use std::time::Duration;

/// Takes frames, usually of consecutive layers, while a prefill still runs; peers pull them as they come. Dropping it
/// forgets it, and aborts one that has not been finished.
pub struct Stream {
    core: Arc<Core>,
}

fn end(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_stream_destroy(handle) };
    Ok(())
}

impl Node {
    /// Opens a stream under a key. A peer may have asked for it before.
    pub fn open_stream(&self, key: &Key) -> Result<Stream> {
        let core = Core::create("stream", end, vec![self.core.hold()?], |holds, t| unsafe {
            sys::kvtf_stream_open(holds[0].handle, key.0.as_ptr(), key.0.len(), t.ptr(), Text::LEN)
        })?;
        Ok(Stream { core })
    }
}

impl Stream {
    /// Adds one frame, which is copied.
    pub fn append(&mut self, frame: &[u8]) -> Result<()> {
        self.core
            .on("stream append", |h, t| unsafe {
                sys::kvtf_stream_append(h, frame.as_ptr(), frame.len(), t.ptr(), Text::LEN)
            })
            .map(|_| ())
    }

    /// Completes the stream; peers may go on pulling it until it is dropped.
    pub fn finish(&mut self) -> Result<()> {
        self.core.on("stream finish", |h, t| unsafe { sys::kvtf_stream_finish(h, 1, t.ptr(), Text::LEN) }).map(|_| ())
    }

    /// Ends the stream; its pullers get `CANCELLED`.
    pub fn abort(&mut self) -> Result<()> {
        self.core.on("stream abort", |h, t| unsafe { sys::kvtf_stream_finish(h, 0, t.ptr(), Text::LEN) }).map(|_| ())
    }

    pub fn close(&self) -> Result<()> {
        self.core.close()
    }
}

impl Peer {
    /// Pulls a stream of up to `parts` frames, which fill up to `bytes`. Each part gives the node a completion with
    /// `part` set, from when on `Operation::frame(items_ok - 1)` copies it; the stream's end gives one without.
    pub fn submit_pull_stream(&self, key: &Key, bytes: usize, parts: usize, timeout: Duration) -> Result<Operation> {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        operation::submit(vec![self.node.hold()?, self.core.hold()?], |holds, t| unsafe {
            sys::kvtf_peer_submit_pull_stream(
                holds[0].handle,
                holds[1].handle,
                key.0.as_ptr(),
                key.0.len(),
                number(bytes),
                number(parts),
                milliseconds(timeout),
                t.ptr(),
                Text::LEN,
            )
        })
    }
}
