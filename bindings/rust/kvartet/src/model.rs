//! Runtime, model and keys.
use crate::codec::View;
use crate::native::{self, bits, bytes_of, call, record, Core, Text};
use crate::status::{Error, Result, Status};
use crate::sys;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// The library's threads and memory limit, under caches, nodes and meters.
pub struct Runtime {
    pub(crate) core: Arc<Core>,
}

/// `Default` are the library's.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Worker threads, 1 to 256.
    pub threads: u32,
    /// Bytes for frames and buffers; 0: none.
    pub memory_limit: u64,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        let d = native::defaults(sys::KVTF_RECORD_RUNTIME);
        RuntimeOptions {
            threads: native::word(&d, sys::KVTF_RUNTIME_THREADS) as u32,
            memory_limit: native::word(&d, sys::KVTF_RUNTIME_MEMORY_LIMIT) as u64,
        }
    }
}

fn end_runtime(handle: i64) -> Result<()> {
    let wait = native::milliseconds(CLOSE_WAIT);
    let closed = call("runtime close", |t| unsafe { sys::kvtf_runtime_close(handle, wait, t.ptr(), Text::LEN) });
    unsafe { sys::kvtf_runtime_destroy(handle) };
    closed.map(|_| ())
}

impl Runtime {
    pub fn new(options: &RuntimeOptions) -> Result<Runtime> {
        let packed = record(&[i64::from(options.threads), options.memory_limit as i64]);
        let core = Core::create("runtime", end_runtime, vec![], |_, t| unsafe {
            sys::kvtf_runtime_create(packed.as_ptr(), packed.len(), t.ptr(), Text::LEN)
        })?;
        Ok(Runtime { core })
    }

    /// Ends the runtime; `BUSY` while caches, nodes or meters of it are open.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// What the library has allocated for frames and buffers.
    pub fn memory_used(&self) -> Result<u64> {
        let used =
            self.core.on("memory used", |h, t| unsafe { sys::kvtf_runtime_memory_used(h, t.ptr(), Text::LEN) })?;
        Ok(used as u64)
    }
}

/// The type of KV elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element(pub u32);

impl Element {
    pub const F32: Element = Element(sys::KVTF_ELEMENT_F32 as u32);
    pub const F16: Element = Element(sys::KVTF_ELEMENT_F16 as u32);
    pub const BF16: Element = Element(sys::KVTF_ELEMENT_BF16 as u32);
}

/// Style of rotary embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rope(pub u32);

impl Rope {
    pub const NONE: Rope = Rope(sys::KVTF_ROPE_NONE as u32);
    pub const INTERLEAVED: Rope = Rope(sys::KVTF_ROPE_INTERLEAVED as u32);
    pub const HALF_SPLIT: Rope = Rope(sys::KVTF_ROPE_HALF_SPLIT as u32);
}

/// Identity and geometry; `Default` are the library's.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    pub id: Vec<u8>,
    pub adapter: Vec<u8>,
    /// 1: K and V; 2: the latent of MLA.
    pub layout: u32,
    pub layers: u32,
    pub kv_heads: u32,
    pub k_dim: u32,
    pub v_dim: u32,
    pub element: Element,
    pub rope_style: Rope,
    pub rope_offset: u32,
    pub rope_dims: u32,
    pub rope_base: f64,
    pub rope_magnitude: f64,
    pub rope_factors: Vec<f64>,
}

impl Default for ModelOptions {
    fn default() -> Self {
        let d = native::defaults(sys::KVTF_RECORD_MODEL);
        let small = |index| native::word(&d, index) as u32;
        ModelOptions {
            id: vec![],
            adapter: vec![],
            layout: small(sys::KVTF_MODEL_LAYOUT),
            layers: small(sys::KVTF_MODEL_LAYERS),
            kv_heads: small(sys::KVTF_MODEL_KV_HEADS),
            k_dim: small(sys::KVTF_MODEL_K_DIM),
            v_dim: small(sys::KVTF_MODEL_V_DIM),
            element: Element(small(sys::KVTF_MODEL_ELEMENT)),
            rope_style: Rope(small(sys::KVTF_MODEL_ROPE_STYLE)),
            rope_offset: small(sys::KVTF_MODEL_ROPE_OFFSET),
            rope_dims: small(sys::KVTF_MODEL_ROPE_DIMS),
            rope_base: native::real(&d, sys::KVTF_MODEL_ROPE_BASE),
            rope_magnitude: native::real(&d, sys::KVTF_MODEL_ROPE_MAGNITUDE),
            rope_factors: vec![],
        }
    }
}

impl ModelOptions {
    fn record(&self) -> Vec<u8> {
        record(&[
            i64::from(self.layout),
            i64::from(self.layers),
            i64::from(self.kv_heads),
            i64::from(self.k_dim),
            i64::from(self.v_dim),
            i64::from(self.element.0),
            i64::from(self.rope_style.0),
            i64::from(self.rope_offset),
            i64::from(self.rope_dims),
            bits(self.rope_base),
            bits(self.rope_magnitude),
        ])
    }
}

/// An immutable description of what computed the KV.
pub struct Model {
    pub(crate) core: Arc<Core>,
}

fn end_model(handle: i64) -> Result<()> {
    unsafe { sys::kvtf_model_destroy(handle) };
    Ok(())
}

/// The part of a model that one rank holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub layer_begin: u32,
    pub layer_end: u32,
    pub head_begin: u32,
    pub head_end: u32,
    pub block_tokens: u32,
}

/// Names a block; see docs/keys.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Key(pub [u8; 36]);

/// That of a namespace and salt.
pub type Digest = [u8; 16];

/// Bytes that belong to a token beside its id.
#[derive(Debug, Clone)]
pub struct Extra {
    pub token: u64,
    pub data: Vec<u8>,
}

/// What a key is made of beside the model and the tokens.
#[derive(Debug, Clone)]
pub struct Naming {
    pub block_tokens: u32,
    pub namespace: Vec<u8>,
    pub salt: Vec<u8>,
    pub extras: Vec<Extra>,
}

impl Default for Naming {
    fn default() -> Self {
        let block_tokens = sys::KVTF_GRAIN_TOKENS as u32;
        Naming { block_tokens, namespace: vec![], salt: vec![], extras: vec![] }
    }
}

impl Model {
    pub fn new(o: &ModelOptions) -> Result<Model> {
        let packed = o.record();
        let factors = bytes_of(&o.rope_factors);
        let core = Core::create("model", end_model, vec![], |_, t| unsafe {
            sys::kvtf_model_create(
                packed.as_ptr(),
                packed.len(),
                o.id.as_ptr(),
                o.id.len(),
                o.adapter.as_ptr(),
                o.adapter.len(),
                factors.as_ptr(),
                factors.len(),
                t.ptr(),
                Text::LEN,
            )
        })?;
        Ok(Model { core })
    }

    /// Ends the model; `BUSY` while codecs or nodes of it are open.
    pub fn close(&self) -> Result<()> {
        self.core.close()
    }

    /// The 128-bit identity.
    pub fn fingerprint(&self) -> Result<Vec<u8>> {
        self.core.on_output("fingerprint", 16, |h, buf, cap, t| unsafe {
            sys::kvtf_model_fingerprint(h, buf, cap, t.ptr(), Text::LEN)
        })
    }

    /// The bytes that the fingerprint is of.
    pub fn canonical(&self) -> Result<Vec<u8>> {
        self.core.on_output("canonical", 256, |h, buf, cap, t| unsafe {
            sys::kvtf_model_canonical(h, buf, cap, t.ptr(), Text::LEN)
        })
    }

    /// `MISMATCH`, naming the first field that differs, unless both are the same model.
    pub fn compare(&self, other: &Model) -> Result<()> {
        let right = other.core.hold()?;
        self.core
            .on("compare", |left, t| unsafe { sys::kvtf_model_compare(left, right.handle, t.ptr(), Text::LEN) })
            .map(|_| ())
    }

    /// The whole model, in blocks of 16 tokens, to cut a part from.
    pub fn shard(&self) -> Result<Shard> {
        let bytes = self.core.on_output("shard", 8 * sys::KVTF_SHARD_WORDS as usize, |h, buf, cap, t| unsafe {
            sys::kvtf_model_shard(h, buf, cap, t.ptr(), Text::LEN)
        })?;
        let word = |index| native::word(&bytes, index) as u32;
        Ok(Shard {
            layer_begin: word(sys::KVTF_SHARD_LAYER_BEGIN),
            layer_end: word(sys::KVTF_SHARD_LAYER_END),
            head_begin: word(sys::KVTF_SHARD_HEAD_BEGIN),
            head_end: word(sys::KVTF_SHARD_HEAD_END),
            block_tokens: word(sys::KVTF_SHARD_BLOCK_TOKENS),
        })
    }

    /// Turns the rotary embedding of tokens of a view back (`undo`) or forth, in place.
    pub fn rope(&self, view: &View, memory: &mut [u8], token_begin: u64, tokens: u64, undo: bool) -> Result<()> {
        let packed = view.record();
        let (bases, table) = (bytes_of(&view.bases), bytes_of(&view.block_table));
        self.core
            .on("rope", |h, t| unsafe {
                sys::kvtf_model_rope(
                    h,
                    packed.as_ptr(),
                    packed.len(),
                    bases.as_ptr(),
                    bases.len(),
                    table.as_ptr(),
                    table.len(),
                    memory.as_mut_ptr(),
                    memory.len(),
                    token_begin as i64,
                    tokens as i64,
                    i64::from(undo),
                    t.ptr(),
                    Text::LEN,
                )
            })
            .map(|_| ())
    }

    /// The keys of all whole blocks, in order.
    pub fn keys(&self, tokens: &[i32], naming: &Naming) -> Result<Vec<Key>> {
        let mut extras = vec![];
        for extra in &naming.extras {
            extras.extend(record(&[extra.token as i64, extra.data.len() as i64]));
            extras.extend(&extra.data);
        }
        let tokens = bytes_of(tokens);
        let room = (tokens.len() / 4 / naming.block_tokens.max(1) as usize + 1) * 36;
        let packed = self.core.on_output("keys", room, |h, buf, cap, t| unsafe {
            sys::kvtf_keys_compute(
                h,
                i64::from(naming.block_tokens),
                naming.namespace.as_ptr(),
                naming.namespace.len(),
                naming.salt.as_ptr(),
                naming.salt.len(),
                tokens.as_ptr(),
                tokens.len(),
                extras.as_ptr(),
                extras.len(),
                buf,
                cap,
                t.ptr(),
                Text::LEN,
            )
        })?;
        Ok(packed.chunks_exact(36).map(|key| Key(key.try_into().expect("36 bytes"))).collect())
    }
}

/// What frames carry and peers are checked by.
pub fn namespace_digest(namespace: &[u8], salt: &[u8]) -> Result<Digest> {
    let mut digest = [0; 16];
    call("digest", |t| unsafe {
        sys::kvtf_namespace_digest(
            namespace.as_ptr(),
            namespace.len(),
            salt.as_ptr(),
            salt.len(),
            digest.as_mut_ptr(),
            digest.len(),
            t.ptr(),
            Text::LEN,
        )
    })?;
    Ok(digest)
}

/// Routing hashes as NVIDIA Dynamo and SMG compute them; never use them to name data.
pub fn block_hashes(tokens: &[i32], block_tokens: u32, adapter: &[u8], namespace: &[u8]) -> Result<Vec<u64>> {
    if block_tokens == 0 {
        return Err(Error::new(Status::INVALID_ARGUMENT, "block hashes", "block_tokens is 0".into()));
    }
    let room = (tokens.len() / block_tokens as usize + 1) * 8;
    let tokens = bytes_of(tokens);
    let packed = native::output("block hashes", room, |buf, cap, t| unsafe {
        sys::kvtf_block_hashes(
            i64::from(block_tokens),
            tokens.as_ptr(),
            tokens.len(),
            adapter.as_ptr(),
            adapter.len(),
            namespace.as_ptr(),
            namespace.len(),
            buf,
            cap,
            t.ptr(),
            Text::LEN,
        )
    })?;
    Ok(packed.chunks_exact(8).map(|h| u64::from_le_bytes(h.try_into().expect("8 bytes"))).collect())
}
