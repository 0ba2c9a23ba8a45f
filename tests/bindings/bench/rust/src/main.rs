//! bench.c in Rust.
use kvartet::*;
use std::io::BufRead;
use std::time::{Duration, Instant};

const COUNT: usize = 128;
const ROUNDS: usize = 80;
const BLOCK: usize = 16;

fn main() -> Result<()> {
    let id = b"bench".to_vec();
    let o = ModelOptions { id, layers: 4, kv_heads: 4, k_dim: 64, v_dim: 64, ..ModelOptions::default() };
    let model = Model::new(&o)?;
    let codec = Codec::new(&model, "raw", &CodecOptions::default())?;
    let tokens: Vec<i32> = (0..(COUNT * BLOCK) as i32).collect();
    let keys = model.keys(&tokens, &Naming::default())?;
    let (view, bytes) = View::contiguous(&o, tokens.len());
    let memory: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 251) as u8 & 0x3f).collect();
    let mut frames = vec![];
    for (i, key) in keys.iter().enumerate() {
        let (token_begin, token_count) = ((i * BLOCK) as u64, BLOCK as u64);
        let spec = Spec { token_begin, token_count, key: Some(*key), ..Spec::default() };
        frames.push(codec.encode(&view, &memory, &spec)?.0);
    }
    let runtime = Runtime::new(&RuntimeOptions::default())?;
    let cache = Cache::open(&runtime, "mem:?capacity=256MiB")?;
    let mut buffer = vec![0; frames[0].len() + 4096];
    for _ in std::io::stdin().lock().lines() {
        let mut took = Duration::ZERO;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            for (key, frame) in keys.iter().zip(&frames) {
                cache.put(key, frame)?;
                cache.get_into(key, &mut buffer)?;
            }
            took += begun.elapsed();
            cache.remove(&keys)?;
        }
        println!("{}", took.as_nanos());
    }
    Ok(())
}
