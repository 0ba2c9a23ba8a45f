//! Nodes and peers.
use crate::cache::{moved, pack, Cache, Moved};
use crate::model::{Digest, Key, Model, Runtime};
use crate::native::{self, bytes_of, bytes_of_mut, milliseconds, record, Core, Text};
use crate::operation::{self, Completion, Operation};
use crate::status::{Error, Result, Status};
use crate::sys;
use std::sync::Arc;
use std::time::Duration;

/// Serves a cache to peers and connects to others.
pub struct Node {
    pub(crate) core: Arc<Core>,
}

/// `Default` are the library's.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// URL to serve on; empty: a client only.
    pub listen: String,
    pub digest: Option<Digest>,
    pub max_connections: u32,
    pub max_frame_bytes: u64,
    pub stall_ms: u32,
}

impl Default for NodeOptions {
    fn default() -> Self {
        let d = native::defaults(sys::KVTF_RECORD_NODE);
        NodeOptions {
            listen: String::new(),
            digest: None,
            max_connections: native::word(&d, sys::KVTF_NODE_MAX_CONNECTIONS) as u32,
            max_frame_bytes: native::word(&d, sys::KVTF_NODE_MAX_FRAME_BYTES) as u64,
            stall_ms: native::word(&d, sys::KVTF_NODE_STALL_MS) as u32,
        }
    }
}

/// Counts since the node was opened.
#[derive(Debug, Clone, Copy)]
pub struct NodeStats {
    pub connections: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub frames_sent: u64,
    pub frames_received: u64,
    pub checksums: u64,
    pub refused_version: u64,
    pub refused_model: u64,
    pub refused_namespace: u64,
    pub refused_limit: u64,
    pub corrupt: u64,
}

fn end_node(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_node_destroy(handle) };
    Ok(())
}

impl Node {
    pub fn open(runtime: &Runtime, model: &Model, o: &NodeOptions) -> Result<Node> {
        let packed = record(&[i64::from(o.max_connections), o.max_frame_bytes as i64, i64::from(o.stall_ms)]);
        let digest: &[u8] = o.digest.as_ref().map_or(&[], |digest| digest);
        let holds = vec![runtime.core.hold()?, model.core.hold()?];
        let core = Core::create("node", end_node, holds, |holds, t| unsafe {
            sys::kvtf_node_open(
                holds[0].handle,
                holds[1].handle,
                packed.as_ptr(),
                packed.len(),
                o.listen.as_ptr(),
                o.listen.len(),
                digest.as_ptr(),
                digest.len(),
                t.ptr(),
                Text::LEN,
            )
        })?;
        Ok(Node { core })
    }

    /// Closes the connections; never waits for a peer. `BUSY` while peers of it are open.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// Lets peers pull from the cache and push into it; the cache stays open until the node is closed.
    pub fn serve(&self, cache: &Cache) -> Result<()> {
        let hold = cache.core.hold()?;
        let node = self.core.hold()?;
        native::call("serve", |t| unsafe { sys::kvtf_node_serve(node.handle, hold.handle, t.ptr(), Text::LEN) })?;
        self.core.adopt(hold);
        Ok(())
    }

    /// Where a peer can connect to.
    pub fn url(&self) -> Result<String> {
        let text = self.core.on_output("node url", 128, |h, buf, cap, t| unsafe {
            sys::kvtf_node_url(h, buf, cap, t.ptr(), Text::LEN)
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    pub fn stats(&self) -> Result<NodeStats> {
        let bytes =
            self.core.on_output("node stats", 8 * sys::KVTF_NODE_STATS_WORDS as usize, |h, buf, cap, t| unsafe {
                sys::kvtf_node_stats(h, buf, cap, t.ptr(), Text::LEN)
            })?;
        let word = |index| native::word(&bytes, index) as u64;
        Ok(NodeStats {
            connections: word(sys::KVTF_NODE_STATS_CONNECTIONS),
            bytes_sent: word(sys::KVTF_NODE_STATS_BYTES_SENT),
            bytes_received: word(sys::KVTF_NODE_STATS_BYTES_RECEIVED),
            frames_sent: word(sys::KVTF_NODE_STATS_FRAMES_SENT),
            frames_received: word(sys::KVTF_NODE_STATS_FRAMES_RECEIVED),
            checksums: word(sys::KVTF_NODE_STATS_CHECKSUMS),
            refused_version: word(sys::KVTF_NODE_STATS_REFUSED_VERSION),
            refused_model: word(sys::KVTF_NODE_STATS_REFUSED_MODEL),
            refused_namespace: word(sys::KVTF_NODE_STATS_REFUSED_NAMESPACE),
            refused_limit: word(sys::KVTF_NODE_STATS_REFUSED_LIMIT),
            corrupt: word(sys::KVTF_NODE_STATS_CORRUPT),
        })
    }

    /// A descriptor that is readable while completions of the node's peers wait.
    pub fn event_fd(&self) -> Result<i32> {
        let fd = self.core.on("event fd", |h, t| unsafe { sys::kvtf_node_event_fd(h, t.ptr(), Text::LEN) })?;
        Ok(fd as i32)
    }

    pub fn wait_event(&self, timeout: Duration) -> Result<bool> {
        operation::wait_event(&self.core, self.event_fd()?, timeout)
    }

    pub fn poll(&self, max: usize) -> Result<Vec<Completion>> {
        operation::poll(&self.core, max, sys::kvtf_node_poll)
    }

    /// Shakes hands with another node.
    pub fn connect(&self, url: &str, timeout: Duration) -> Result<Peer> {
        let core = Core::create("peer", end_peer, vec![self.core.hold()?], |holds, t| unsafe {
            let wait = milliseconds(timeout);
            sys::kvtf_node_connect(holds[0].handle, url.as_ptr(), url.len(), wait, t.ptr(), Text::LEN)
        })?;
        Ok(Peer { core, node: self.core.clone() })
    }
}

/// A connection to another node.
pub struct Peer {
    pub(crate) core: Arc<Core>,
    pub(crate) node: Arc<Core>,
}

fn end_peer(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_peer_destroy(handle) };
    Ok(())
}

/// What a pull brought: a frame that did not come is `None` and has its own status.
#[derive(Debug)]
pub struct Pulled {
    pub frames: Vec<Option<Vec<u8>>>,
    pub results: Vec<Status>,
    pub failure: Option<Error>,
}

impl Peer {
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// Pulls frames by key, each up to `max_frame` bytes and checked.
    pub fn pull(&self, keys: &[Key], max_frame: usize, timeout: Duration) -> Result<Pulled> {
        let node = self.node.hold()?;
        let mut slots: Vec<u8> = Vec::with_capacity(keys.len() * max_frame);
        let mut lengths = vec![0u64; keys.len()];
        let key_bytes = bytes_of(keys);
        let length_bytes = bytes_of_mut(&mut lengths);
        let moved = moved(keys.len(), |results| {
            self.core.on("pull", |h, t| unsafe {
                sys::kvtf_peer_pull(
                    node.handle,
                    h,
                    key_bytes.as_ptr(),
                    key_bytes.len(),
                    slots.as_mut_ptr(),
                    slots.capacity(),
                    max_frame as i64,
                    length_bytes.as_mut_ptr(),
                    length_bytes.len(),
                    results.as_mut_ptr(),
                    results.len(),
                    milliseconds(timeout),
                    t.ptr(),
                    Text::LEN,
                )
            })
        })?;
        let frame = |i: usize| {
            // Only a frame that is OK was written, and its length is at most a slot's.
            let len = (lengths[i] as usize).min(max_frame);
            let bytes = unsafe { std::slice::from_raw_parts(slots.as_ptr().add(i * max_frame), len) };
            (moved.results[i] == Status::OK).then(|| bytes.to_vec())
        };
        let frames = (0..keys.len()).map(frame).collect();
        Ok(Pulled { frames, results: moved.results, failure: moved.failure })
    }

    /// Puts frames into the cache that the peer serves.
    pub fn push(&self, keys: &[Key], frames: &[&[u8]], timeout: Duration) -> Result<Moved> {
        let node = self.node.hold()?;
        let (packed, lengths) = pack(frames);
        let (key_bytes, lengths) = (bytes_of(keys), bytes_of(&lengths));
        moved(keys.len(), |results| {
            self.core.on("push", |h, t| unsafe {
                sys::kvtf_peer_push(
                    node.handle,
                    h,
                    key_bytes.as_ptr(),
                    key_bytes.len(),
                    packed.as_ptr(),
                    packed.len(),
                    lengths.as_ptr(),
                    lengths.len(),
                    results.as_mut_ptr(),
                    results.len(),
                    milliseconds(timeout),
                    t.ptr(),
                    Text::LEN,
                )
            })
        })
    }

    /// As `pull`; `Operation::frame` gives what it brought.
    pub fn submit_pull(&self, keys: &[Key], max_frame: usize, timeout: Duration) -> Result<Operation> {
        let keys = bytes_of(keys);
        let (stride, wait) = (i64::try_from(max_frame).unwrap_or(i64::MAX), milliseconds(timeout));
        operation::submit(vec![self.node.hold()?, self.core.hold()?], |holds, t| unsafe {
            let (node, peer) = (holds[0].handle, holds[1].handle);
            sys::kvtf_peer_submit_pull(node, peer, keys.as_ptr(), keys.len(), stride, wait, t.ptr(), Text::LEN)
        })
    }

    /// As `push`.
    pub fn submit_push(&self, keys: &[Key], frames: &[&[u8]], timeout: Duration) -> Result<Operation> {
        let (packed, lengths) = pack(frames);
        let (keys, lengths) = (bytes_of(keys), bytes_of(&lengths));
        operation::submit(vec![self.node.hold()?, self.core.hold()?], |holds, t| unsafe {
            sys::kvtf_peer_submit_push(
                holds[0].handle,
                holds[1].handle,
                keys.as_ptr(),
                keys.len(),
                packed.as_ptr(),
                packed.len(),
                lengths.as_ptr(),
                lengths.len(),
                milliseconds(timeout),
                t.ptr(),
                Text::LEN,
            )
        })
    }
}
