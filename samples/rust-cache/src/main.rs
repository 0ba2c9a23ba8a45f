//! Shares a cache directory with embed_cache.c and the Java sample: what another program has stored is loaded and
//! compared, what nobody has is stored. A directory is open in one program at a time.
//! Run: KVARTET_PREFIX=/usr cargo run -- [DIRECTORY]
use kvartet::*;
use std::time::Duration;

const TOKENS: usize = 64;
const BLOCK: u32 = 16;
const WAIT: Duration = Duration::from_secs(5);

fn run(directory: &str) -> Result<bool> {
    let options = ModelOptions {
        id: b"digest of the weights".to_vec(),
        layers: 4,
        kv_heads: 2,
        k_dim: 32,
        v_dim: 32,
        ..ModelOptions::default()
    };
    let runtime = Runtime::new(&RuntimeOptions::default())?;
    let model = Model::new(&options)?;
    let codec = Codec::new(&model, "raw", &CodecOptions::default())?;
    let cache = Cache::open(&runtime, &format!("file:{}?capacity=1GiB", directory))?;

    // Same tokens, model and namespace: same keys as in C and Java.
    let tokens: Vec<i32> = (0..TOKENS as i32).collect();
    let keys = model.keys(&tokens, &Naming::default())?;
    let (view, bytes) = View::contiguous(&options, TOKENS);
    let mut memory = vec![0; bytes];
    let found = cache.matched(&keys)?;
    let loaded = cache.load(&codec, &view, &mut memory, &Spec::default(), BLOCK, &keys[..found], WAIT)?;
    if let Some(failure) = loaded.failure {
        return Err(failure);
    }
    let plane = bytes / (2 * options.layers as usize);
    let of_blocks = plane / keys.len() * found;
    let same = memory.chunks(plane).all(|rows| rows[..of_blocks].iter().all(|byte| *byte == 0x3c));

    memory.fill(0x3c); // what prefill would leave
    cache.store(&codec, &view, &memory, &Spec::default(), BLOCK, &keys, WAIT)?;
    let verdict = if same { "equal" } else { "NOT EQUAL" };
    println!("rust: {} of {} blocks found in {}; the bytes are {}", found, keys.len(), directory, verdict);
    cache.close()?; // drop would do; close says whether the flush went well
    Ok(same)
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "embed_cache.dir".into());
    match run(&directory) {
        Ok(same) => std::process::exit(if same { 0 } else { 1 }),
        Err(error) => {
            eprintln!("{}", error);
            std::process::exit(1);
        }
    }
}
