//! The cache.
use crate::codec::{Codec, Spec, View};
use crate::model::{Key, Runtime, CLOSE_WAIT};
use crate::native::{self, bytes_of, bytes_of_mut, call, milliseconds, Core, Text};
use crate::operation::{self, Completion, Memory, Operation};
use crate::status::{Error, Result, Status};
use crate::sys;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Keeps frames by key, in memory or in a directory.
pub struct Cache {
    pub(crate) core: Arc<Core>,
    guess: AtomicUsize, // bytes of the longest frame that `get` met
}

/// Counts since the cache was opened.
#[derive(Debug, Clone, Copy)]
pub struct CacheStats {
    pub frames: u64,
    pub bytes: u64,
    pub capacity_bytes: u64,
    pub puts: u64,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    pub removals: u64,
    pub corrupt: u64,
    pub torn: u64,
    pub checksums: u64,
}

/// What moves several items: the status of each, and the first failure if there is one.
#[derive(Debug)]
pub struct Moved {
    pub results: Vec<Status>,
    pub failure: Option<Error>,
}

/// Items fail one by one, which is a result; a refusal of the whole call is an error.
pub(crate) fn moved(count: usize, function: impl FnOnce(&mut [u8]) -> Result<i64>) -> Result<Moved> {
    let mut results = vec![Status::OK; count];
    match function(bytes_of_mut(&mut results)) {
        Ok(_) => Ok(Moved { results, failure: None }),
        Err(failure) if results.iter().any(|status| *status != Status::OK) => {
            Ok(Moved { results, failure: Some(failure) })
        }
        Err(failure) => Err(failure),
    }
}

/// Frames one after another, and their lengths.
pub(crate) fn pack(frames: &[&[u8]]) -> (Vec<u8>, Vec<u64>) {
    (frames.concat(), frames.iter().map(|frame| frame.len() as u64).collect())
}

fn end(handle: i64) -> Result<()> {
    let wait = milliseconds(CLOSE_WAIT);
    let closed = call("cache close", |t| unsafe { sys::kvtf_cache_close(handle, wait, t.ptr(), Text::LEN) });
    unsafe { sys::kvtf_cache_destroy(handle) };
    closed.map(|_| ())
}

impl Cache {
    /// Opens "mem:?capacity=4GiB", "file:/directory" and the like.
    pub fn open(runtime: &Runtime, url: &str) -> Result<Cache> {
        let core = Core::create("cache", end, vec![runtime.core.hold()?], |holds, t| unsafe {
            sys::kvtf_cache_open(holds[0].handle, url.as_ptr(), url.len(), t.ptr(), Text::LEN)
        })?;
        Ok(Cache { core, guess: AtomicUsize::new(4096) })
    }

    /// Flushes and ends the cache; `BUSY` while operations of it are open or a node serves it.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// Stores one frame under its key; it replaces one of another form. It runs in the calling thread; with "file:" it
    /// waits for the disk.
    pub fn put(&self, key: &Key, frame: &[u8]) -> Result<()> {
        let done = self.core.on("put", |h, t| unsafe {
            sys::kvtf_cache_put_one(h, key.0.as_ptr(), key.0.len(), frame.as_ptr(), frame.len(), t.ptr(), Text::LEN)
        });
        done.map(|_| ())
    }

    /// Stores frames.
    pub fn put_all(&self, keys: &[Key], frames: &[&[u8]], timeout: Duration) -> Result<Moved> {
        let (packed, lengths) = pack(frames);
        let (key_bytes, length_bytes) = (bytes_of(keys), bytes_of(&lengths));
        moved(keys.len(), |results| {
            self.core.on("put", |h, t| unsafe {
                sys::kvtf_cache_put(
                    h,
                    key_bytes.as_ptr(),
                    key_bytes.len(),
                    packed.as_ptr(),
                    packed.len(),
                    length_bytes.as_ptr(),
                    length_bytes.len(),
                    results.as_mut_ptr(),
                    results.len(),
                    milliseconds(timeout),
                    t.ptr(),
                    Text::LEN,
                )
            })
        })
    }

    /// Copies a frame, checked whole, into `buf` and returns its length.
    pub fn get_into(&self, key: &Key, buf: &mut [u8]) -> Result<usize> {
        let len = self.core.on("get", |h, t| unsafe {
            sys::kvtf_cache_get(h, key.0.as_ptr(), key.0.len(), buf.as_mut_ptr(), buf.len(), t.ptr(), Text::LEN)
        })? as usize;
        if len > buf.len() {
            let text = format!("the frame has {} bytes, the buffer {}", len, buf.len());
            return Err(Error::new(Status::BUFFER_TOO_SMALL, "get", text));
        }
        Ok(len)
    }

    /// Copies a frame, checked whole.
    pub fn get(&self, key: &Key) -> Result<Vec<u8>> {
        let guess = self.guess.load(Ordering::Relaxed);
        let frame = self.core.on_output("get", guess, |h, buf, cap, t| unsafe {
            sys::kvtf_cache_get(h, key.0.as_ptr(), key.0.len(), buf, cap, t.ptr(), Text::LEN)
        })?;
        self.guess.fetch_max(frame.len(), Ordering::Relaxed);
        Ok(frame)
    }

    /// Length of the longest prefix of `keys` that is present.
    pub fn matched(&self, keys: &[Key]) -> Result<usize> {
        let keys = bytes_of(keys);
        let count = self
            .core
            .on("match", |h, t| unsafe { sys::kvtf_cache_match(h, keys.as_ptr(), keys.len(), t.ptr(), Text::LEN) })?;
        Ok(count as usize)
    }

    /// Removes frames and returns how many were there.
    pub fn remove(&self, keys: &[Key]) -> Result<usize> {
        let keys = bytes_of(keys);
        let count = self
            .core
            .on("remove", |h, t| unsafe { sys::kvtf_cache_remove(h, keys.as_ptr(), keys.len(), t.ptr(), Text::LEN) })?;
        Ok(count as usize)
    }

    pub fn stats(&self) -> Result<CacheStats> {
        let bytes =
            self.core.on_output("stats", 8 * sys::KVTF_CACHE_STATS_WORDS as usize, |h, buf, cap, t| unsafe {
                sys::kvtf_cache_stats(h, buf, cap, t.ptr(), Text::LEN)
            })?;
        let word = |index| native::word(&bytes, index) as u64;
        Ok(CacheStats {
            frames: word(sys::KVTF_CACHE_STATS_FRAMES),
            bytes: word(sys::KVTF_CACHE_STATS_BYTES),
            capacity_bytes: word(sys::KVTF_CACHE_STATS_CAPACITY_BYTES),
            puts: word(sys::KVTF_CACHE_STATS_PUTS),
            hits: word(sys::KVTF_CACHE_STATS_HITS),
            misses: word(sys::KVTF_CACHE_STATS_MISSES),
            evictions: word(sys::KVTF_CACHE_STATS_EVICTIONS),
            removals: word(sys::KVTF_CACHE_STATS_REMOVALS),
            corrupt: word(sys::KVTF_CACHE_STATS_CORRUPT),
            torn: word(sys::KVTF_CACHE_STATS_TORN),
            checksums: word(sys::KVTF_CACHE_STATS_CHECKSUMS),
        })
    }

    /// Encodes blocks of a view under keys.
    #[allow(clippy::too_many_arguments)]
    pub fn store(
        &self,
        codec: &Codec,
        view: &View,
        memory: &[u8],
        spec: &Spec,
        block_tokens: u32,
        keys: &[Key],
        timeout: Duration,
    ) -> Result<Moved> {
        // The library only reads the memory of a store.
        let room = (memory.as_ptr() as *mut u8, memory.len());
        self.transfer("store", sys::kvtf_cache_store, codec, view, room, spec, block_tokens, keys, timeout)
    }

    /// Checks and decodes blocks into a view.
    #[allow(clippy::too_many_arguments)]
    pub fn load(
        &self,
        codec: &Codec,
        view: &View,
        memory: &mut [u8],
        spec: &Spec,
        block_tokens: u32,
        keys: &[Key],
        timeout: Duration,
    ) -> Result<Moved> {
        let room = (memory.as_mut_ptr(), memory.len());
        self.transfer("load", sys::kvtf_cache_load, codec, view, room, spec, block_tokens, keys, timeout)
    }

    #[allow(clippy::too_many_arguments)]
    fn transfer(
        &self,
        name: &'static str,
        function: TransferFn,
        codec: &Codec,
        view: &View,
        memory: (*mut u8, usize),
        spec: &Spec,
        block_tokens: u32,
        keys: &[Key],
        timeout: Duration,
    ) -> Result<Moved> {
        let codec = codec.core.hold()?;
        let (packed, record, digest) = (view.record(), spec.record(), spec.digest_bytes());
        let (bases, table, key_bytes) = (bytes_of(&view.bases), bytes_of(&view.block_table), bytes_of(keys));
        moved(keys.len(), |results| {
            self.core.on(name, |h, t| unsafe {
                function(
                    h,
                    codec.handle,
                    packed.as_ptr(),
                    packed.len(),
                    bases.as_ptr(),
                    bases.len(),
                    table.as_ptr(),
                    table.len(),
                    memory.0,
                    memory.1,
                    record.as_ptr(),
                    record.len(),
                    digest.as_ptr(),
                    digest.len(),
                    i64::from(block_tokens),
                    key_bytes.as_ptr(),
                    key_bytes.len(),
                    results.as_mut_ptr(),
                    results.len(),
                    milliseconds(timeout),
                    t.ptr(),
                    Text::LEN,
                )
            })
        })
    }

    /// Copies frames and puts them.
    pub fn submit_put(&self, keys: &[Key], frames: &[&[u8]], timeout: Duration) -> Result<Operation> {
        let (packed, lengths) = pack(frames);
        let (keys, lengths) = (bytes_of(keys), bytes_of(&lengths));
        operation::submit(vec![self.core.hold()?], |holds, t| unsafe {
            sys::kvtf_cache_submit_put(
                holds[0].handle,
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

    /// As `store`, from memory that stays open until the operation ends.
    #[allow(clippy::too_many_arguments)]
    pub fn submit_store(
        &self,
        codec: &Codec,
        view: &View,
        memory: &Memory,
        spec: &Spec,
        block_tokens: u32,
        keys: &[Key],
        timeout: Duration,
    ) -> Result<Operation> {
        self.submit(sys::kvtf_cache_submit_store, codec, view, memory, spec, block_tokens, keys, timeout)
    }

    /// As `load`, into memory.
    #[allow(clippy::too_many_arguments)]
    pub fn submit_load(
        &self,
        codec: &Codec,
        view: &View,
        memory: &Memory,
        spec: &Spec,
        block_tokens: u32,
        keys: &[Key],
        timeout: Duration,
    ) -> Result<Operation> {
        self.submit(sys::kvtf_cache_submit_load, codec, view, memory, spec, block_tokens, keys, timeout)
    }

    #[allow(clippy::too_many_arguments)]
    fn submit(
        &self,
        function: SubmitFn,
        codec: &Codec,
        view: &View,
        memory: &Memory,
        spec: &Spec,
        block_tokens: u32,
        keys: &[Key],
        timeout: Duration,
    ) -> Result<Operation> {
        let (packed, record, digest) = (view.record(), spec.record(), spec.digest_bytes());
        let (bases, table, keys) = (bytes_of(&view.bases), bytes_of(&view.block_table), bytes_of(keys));
        let holds = vec![self.core.hold()?, codec.core.hold()?, memory.core.hold()?];
        operation::submit(holds, |holds, t| unsafe {
            function(
                holds[0].handle,
                holds[1].handle,
                packed.as_ptr(),
                packed.len(),
                bases.as_ptr(),
                bases.len(),
                table.as_ptr(),
                table.len(),
                holds[2].handle,
                record.as_ptr(),
                record.len(),
                digest.as_ptr(),
                digest.len(),
                i64::from(block_tokens),
                keys.as_ptr(),
                keys.len(),
                milliseconds(timeout),
                t.ptr(),
                Text::LEN,
            )
        })
    }

    /// A descriptor that is readable while completions wait; it belongs to the cache.
    pub fn event_fd(&self) -> Result<i32> {
        let fd = self.core.on("event fd", |h, t| unsafe { sys::kvtf_cache_event_fd(h, t.ptr(), Text::LEN) })?;
        Ok(fd as i32)
    }

    /// Waits until the descriptor is readable; false at the deadline.
    pub fn wait_event(&self, timeout: Duration) -> Result<bool> {
        operation::wait_event(&self.core, self.event_fd()?, timeout)
    }

    /// Drains up to `max` completions.
    pub fn poll(&self, max: usize) -> Result<Vec<Completion>> {
        operation::poll(&self.core, max, sys::kvtf_cache_poll)
    }
}

type TransferFn = unsafe extern "C" fn(
    i64,
    i64,
    *const u8,
    usize,
    *const u8,
    usize,
    *const u8,
    usize,
    *mut u8,
    usize,
    *const u8,
    usize,
    *const u8,
    usize,
    i64,
    *const u8,
    usize,
    *mut u8,
    usize,
    i64,
    *mut u8,
    usize,
) -> i64;
type SubmitFn = unsafe extern "C" fn(
    i64,
    i64,
    *const u8,
    usize,
    *const u8,
    usize,
    *const u8,
    usize,
    i64,
    *const u8,
    usize,
    *const u8,
    usize,
    i64,
    *const u8,
    usize,
    i64,
    *mut u8,
    usize,
) -> i64;
