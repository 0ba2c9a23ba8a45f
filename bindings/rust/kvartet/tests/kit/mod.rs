//! What the cases share: a small model, its frames and views, and a toy engine.
#![allow(dead_code)] // each test program uses a part
use kvartet::*;
use std::time::Duration;

pub const WAIT: Duration = Duration::from_secs(5);

/// Demands a status and words of its text.
#[track_caller]
pub fn refused<T>(result: Result<T>, status: Status, words: &[&str]) {
    let error = result.err().expect("not refused");
    assert_eq!(error.status, status, "{}", error);
    for word in words {
        assert!(error.to_string().contains(word), "text '{}' lacks '{}'", error, word);
    }
}

pub fn model_options() -> ModelOptions {
    let id = b"digest of the weights".to_vec();
    ModelOptions { id, layers: 2, kv_heads: 2, k_dim: 32, v_dim: 32, ..ModelOptions::default() }
}

pub fn runtime() -> Runtime {
    Runtime::new(&RuntimeOptions::default()).unwrap()
}

pub fn model() -> Model {
    Model::new(&model_options()).unwrap()
}

pub fn codec(model: &Model, name: &str) -> Result<Codec> {
    Codec::new(model, name, &CodecOptions::default())
}

pub fn cache() -> Cache {
    Cache::open(&runtime(), "mem:?capacity=64MiB").unwrap()
}

pub fn tokens(n: i32) -> Vec<i32> {
    (0..n).collect()
}

pub fn empty_view(tokens: usize) -> (View, Vec<u8>) {
    let (view, bytes) = View::contiguous(&model_options(), tokens);
    (view, vec![0; bytes])
}

/// Recognisable rows; every f16 is finite.
pub fn view_of(tokens: usize) -> (View, Vec<u8>) {
    let (view, mut memory) = empty_view(tokens);
    for (i, byte) in memory.iter_mut().enumerate() {
        *byte = (i * 7 + i / 251) as u8 & 0x3f;
    }
    (view, memory)
}

pub fn spec(token_begin: u64, token_count: u64, key: Option<Key>) -> Spec {
    Spec { token_begin, token_count, key, ..Spec::default() }
}

/// n keys and their frames of 16 tokens.
pub fn frames(model: &Model, n: usize) -> (Vec<Key>, Vec<Vec<u8>>) {
    let codec = codec(model, "raw").unwrap();
    let keys = model.keys(&tokens(16 * n as i32), &Naming::default()).unwrap();
    let (view, memory) = view_of(16 * n);
    let encode =
        |(i, key): (usize, &Key)| codec.encode(&view, &memory, &spec(16 * i as u64, 16, Some(*key))).unwrap().0;
    let list = keys.iter().enumerate().map(encode).collect();
    (keys, list)
}

pub fn slices(frames: &[Vec<u8>]) -> Vec<&[u8]> {
    frames.iter().map(Vec::as_slice).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{:02x}", b)).collect()
}

/// A finite f16.
pub fn half(bytes: &[u8]) -> f64 {
    let x = u16::from_le_bytes([bytes[0], bytes[1]]);
    let (exponent, mantissa) = (i32::from(x >> 10 & 31), f64::from(x & 1023) / 1024.0);
    if exponent == 0 {
        mantissa * 2f64.powi(-14)
    } else {
        (1.0 + mantissa) * 2f64.powi(exponent - 15)
    }
}

pub const VOCABULARY: i32 = 97;
pub const TOKENS: u64 = 60;
pub const PROMPT: u64 = 5;

pub fn toy_options(draft_length: u32) -> VerifierOptions {
    VerifierOptions {
        draft_length,
        fidelity: Fidelity::C,
        vocabulary: VOCABULARY as u32,
        prompt_tokens: PROMPT,
        max_tokens: TOKENS,
        first_token: 1,
        ..VerifierOptions::default()
    }
}

/// An engine whose caches are lengths. Its draft errs after multiples of five.
pub struct Toy {
    pub draft: u64,
    pub full: u64,
    pub loads: u32,
    pub fail_at: Option<&'static str>,
    pub committed: Vec<i32>,
}

fn next(token: i32) -> i32 {
    (token * 31 + 7) % VOCABULARY
}

impl Toy {
    pub fn new() -> Toy {
        Toy { draft: PROMPT, full: PROMPT, loads: 0, fail_at: None, committed: vec![] }
    }

    fn at(&self, step: &str) {
        if self.fail_at == Some(step) && self.committed.len() > 10 {
            panic!("engine: {}", step);
        }
    }

    pub fn check_committed(&self) {
        assert_eq!(self.committed.len() as u64, TOKENS - 1);
        let mut token = 1;
        for got in &self.committed {
            token = next(token);
            assert_eq!(*got, token);
        }
    }
}

impl Engine for Toy {
    fn draft(&mut self, tokens: &[i32], n: usize) -> Result<Vec<i32>> {
        self.at("draft");
        let mut token = *tokens.last().unwrap();
        let mut drafted = vec![];
        while drafted.len() < n {
            token = if token % 5 == 0 { (next(token) + 1) % VOCABULARY } else { next(token) };
            drafted.push(token);
        }
        self.draft += (tokens.len() + n - 1) as u64;
        Ok(drafted)
    }

    fn prefetch(&mut self) -> Result<()> {
        self.loads += 1;
        if self.loads == 1 {
            return Err(Error { status: Status::TIMEOUT, call: "toy", text: "the first load is late".into() });
        }
        Ok(())
    }

    fn verify(&mut self, tokens: &[i32], _width: usize) -> Result<Rows> {
        self.at("verify");
        self.full += tokens.len() as u64;
        Ok(Rows { tokens: tokens.iter().map(|t| next(*t)).collect(), gaps: vec![] })
    }

    fn truncate(&mut self, draft_length: u64, full_length: u64) -> Result<()> {
        assert!(draft_length <= self.draft && full_length <= self.full, "a cache would grow");
        self.draft = draft_length;
        self.full = full_length;
        Ok(())
    }

    fn commit(&mut self, tokens: &[i32]) -> Result<()> {
        self.committed.extend(tokens);
        Ok(())
    }
}
