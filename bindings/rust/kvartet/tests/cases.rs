//! One test a case of tests/bindings/cases.toml, but for those of lifetimes.rs and of src/native.rs.
mod kit;
use kit::*;
use kvartet::*;
use kvartet_sys as sys;
use std::collections::HashSet;
use std::time::Duration;

#[test]
fn defaults_are_the_librarys() {
    assert_eq!(RuntimeOptions::default().threads, 2);
    assert_eq!(ModelOptions::default().element, Element::F16);
    assert_eq!(ModelOptions::default().rope_magnitude, 1.0);
    assert_eq!(CodecOptions::default().group_tokens, 32);
    assert_eq!(NodeOptions::default().stall_ms, 2000);
    assert_eq!(VerifierOptions::default().draft_length, 8);
}

#[test]
fn unknown_status_keeps_its_number() {
    assert_eq!(Status(-1234).0, -1234);
    assert_eq!(Status(-1234).name(), "KVT_STATUS_UNKNOWN");
    assert_eq!(Status::TIMEOUT.name(), "KVT_ERR_TIMEOUT");
    assert_eq!(Status::NOT_FOUND, Status(-20));
}

#[test]
fn put_get_round_trip() {
    let (runtime, model) = (runtime(), model());
    let (keys, list) = frames(&model, 3);
    let directory = std::env::temp_dir().join(format!("kvt-rust-{}", std::process::id()));
    let file = format!("file:{}", directory.display());
    for url in ["mem:?capacity=16MiB", &file] {
        let cache = Cache::open(&runtime, url).unwrap();
        cache.put(&keys[0], &list[0]).unwrap();
        let moved = cache.put_all(&keys[1..], &slices(&list[1..]), WAIT).unwrap();
        assert!(moved.failure.is_none());
        assert_eq!(moved.results, [Status::OK; 2]);
        for (key, frame) in keys.iter().zip(&list) {
            assert_eq!(&cache.get(key).unwrap(), frame);
        }
        assert_eq!(cache.stats().unwrap().frames, 3);
        assert_eq!(cache.stats().unwrap().puts, 3);
        cache.close().unwrap();
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn match_prefix() {
    let (cache, model) = (cache(), model());
    let (keys, list) = frames(&model, 4);
    for i in [0, 1, 3] {
        cache.put(&keys[i], &list[i]).unwrap();
    }
    assert_eq!(cache.matched(&keys).unwrap(), 2);
    assert_eq!(cache.matched(&[]).unwrap(), 0);
    assert_eq!(cache.remove(&keys[..3]).unwrap(), 2);
    assert_eq!(cache.matched(&keys).unwrap(), 0);
}

#[test]
fn missing_key() {
    let mut key = [0; 36];
    key[0] = 1;
    let error = cache().get(&Key(key)).unwrap_err();
    assert_eq!(error.status, Status::NOT_FOUND);
    assert!(!error.text.is_empty());
}

#[test]
fn store_load_view() {
    let (cache, model) = (cache(), model());
    let codec = codec(&model, "raw").unwrap();
    let keys = model.keys(&tokens(64), &Naming::default()).unwrap();
    let (view, made) = view_of(64);
    let (_, mut loaded) = empty_view(64);
    let spec = Spec::default();
    let moved = cache.store(&codec, &view, &made, &spec, 16, &keys[..3], WAIT).unwrap();
    assert!(moved.failure.is_none());
    let moved = cache.load(&codec, &view, &mut loaded, &spec, 16, &keys, WAIT).unwrap();
    assert_eq!(moved.failure.unwrap().status, Status::NOT_FOUND);
    assert_eq!(moved.results, [Status::OK, Status::OK, Status::OK, Status::NOT_FOUND]);
    let plane = made.len() / 4;
    for p in 0..4 {
        let part = p * plane..p * plane + plane * 3 / 4;
        assert_eq!(made[part.clone()], loaded[part], "plane {}", p);
    }
}

#[test]
fn async_event_descriptor() {
    let (cache, model) = (cache(), model());
    let (keys, list) = frames(&model, 2);
    assert!(cache.event_fd().unwrap() >= 0);
    assert!(!cache.wait_event(Duration::ZERO).unwrap());
    let operation = cache.submit_put(&keys, &slices(&list), WAIT).unwrap();
    assert!(cache.wait_event(WAIT).unwrap());
    let done = cache.poll(8).unwrap();
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].id, done[0].items_ok, done[0].status), (operation.id(), 2, Status::OK));
    assert!(!cache.wait_event(Duration::ZERO).unwrap());
    assert_eq!(operation.wait(Duration::ZERO).unwrap().items_ok, 2);
    assert_eq!(operation.results().unwrap(), [Status::OK; 2]);
}

#[test]
fn async_load_into_memory() {
    let (cache, model) = (cache(), model());
    let codec = codec(&model, "raw").unwrap();
    let keys = model.keys(&tokens(32), &Naming::default()).unwrap();
    let (view, bytes) = view_of(32);
    let (from, to) = (Memory::new(bytes.len()).unwrap(), Memory::new(bytes.len()).unwrap());
    from.write(0, &bytes).unwrap();
    let stored = cache.submit_store(&codec, &view, &from, &Spec::default(), 16, &keys, WAIT).unwrap();
    refused(from.close(), Status::BUSY, &[]);
    stored.wait(WAIT).unwrap();
    drop(stored);
    from.close().unwrap();
    let loaded = cache.submit_load(&codec, &view, &to, &Spec::default(), 16, &keys, WAIT).unwrap();
    loaded.wait(WAIT).unwrap();
    let mut got = vec![0; bytes.len()];
    to.read(0, &mut got).unwrap();
    assert!(got == bytes);
    refused(to.read(1, &mut got), Status::OUT_OF_RANGE, &["offset 1"]);
}

#[test]
fn operation_cancel() {
    let (cache, model) = (cache(), model());
    let (keys, list) = frames(&model, 2);
    for i in 0..50 {
        let operation = cache.submit_put(&keys, &slices(&list), WAIT).unwrap();
        if i % 2 == 0 {
            if let Err(error) = operation.cancel() {
                assert_eq!(error.status, Status::NOT_FOUND);
            }
            if let Err(error) = operation.wait(WAIT) {
                assert_eq!(error.status, Status::CANCELLED);
            }
        }
    }
    cache.put(&keys[0], &list[0]).unwrap();
    assert_eq!(cache.matched(&keys[..1]).unwrap(), 1);
}

fn listening() -> NodeOptions {
    NodeOptions { listen: "tcp://127.0.0.1:0".into(), ..NodeOptions::default() }
}

#[test]
fn pull_between_nodes() {
    let (runtime, model) = (runtime(), model());
    let cache = Cache::open(&runtime, "mem:?capacity=16MiB").unwrap();
    let (keys, list) = frames(&model, 3);
    let server = Node::open(&runtime, &model, &listening()).unwrap();
    let client = Node::open(&runtime, &model, &NodeOptions::default()).unwrap();
    server.serve(&cache).unwrap();
    let peer = client.connect(&server.url().unwrap(), WAIT).unwrap();
    cache.put(&keys[0], &list[0]).unwrap();
    cache.put(&keys[2], &list[2]).unwrap();
    let pulled = peer.pull(&keys, list[0].len() + 4096, WAIT).unwrap();
    assert_eq!(pulled.failure.unwrap().status, Status::NOT_FOUND);
    assert_eq!(pulled.results, [Status::OK, Status::NOT_FOUND, Status::OK]);
    assert!(pulled.frames == [Some(list[0].clone()), None, Some(list[2].clone())]);
    let operation = peer.submit_pull(&keys[..1], list[0].len(), WAIT).unwrap();
    assert!(client.wait_event(WAIT).unwrap());
    assert_eq!(client.poll(4).unwrap()[0].id, operation.id());
    assert!(operation.frame(0).unwrap() == list[0]);
    refused(operation.frame(1), Status::OUT_OF_RANGE, &["item"]);
    assert_eq!(client.stats().unwrap().frames_received, 3);
}

#[test]
fn push_between_nodes() {
    let (runtime, model) = (runtime(), model());
    let cache = Cache::open(&runtime, "mem:?capacity=16MiB").unwrap();
    let (keys, list) = frames(&model, 3);
    let server = Node::open(&runtime, &model, &listening()).unwrap();
    let client = Node::open(&runtime, &model, &NodeOptions::default()).unwrap();
    server.serve(&cache).unwrap();
    let peer = client.connect(&server.url().unwrap(), WAIT).unwrap();
    assert!(peer.push(&keys[..2], &slices(&list[..2]), WAIT).unwrap().failure.is_none());
    peer.submit_push(&keys[2..], &slices(&list[2..]), WAIT).unwrap().wait(WAIT).unwrap();
    assert_eq!(cache.matched(&keys).unwrap(), 3);
}

#[test]
fn handshake_refused() {
    let (runtime, model) = (runtime(), model());
    let server = Node::open(&runtime, &model, &listening()).unwrap();
    let digest = Some(namespace_digest(b"tenant-a", b"").unwrap());
    let client = Node::open(&runtime, &model, &NodeOptions { digest, ..NodeOptions::default() }).unwrap();
    refused(client.connect(&server.url().unwrap(), WAIT), Status::MISMATCH, &["namespace"]);
}

fn vector(model: &Model, naming: &Naming, chain: [&str; 2]) {
    let keys = model.keys(&tokens(32), naming).unwrap();
    let names: Vec<String> = keys.iter().map(|key| hex(&key.0)).collect();
    assert_eq!(names, [chain[0].to_owned() + "10000000", chain[1].to_owned() + "10000000"]);
    let wide = Naming { block_tokens: 32, ..naming.clone() };
    let keys = model.keys(&tokens(32), &wide).unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(hex(&keys[0].0), chain[1].to_owned() + "20000000");
}

#[test]
fn keys_equal_vectors() {
    let options = ModelOptions {
        id: (0..32).collect(),
        layers: 30,
        kv_heads: 3,
        k_dim: 64,
        v_dim: 64,
        rope_style: Rope::INTERLEAVED,
        rope_dims: 64,
        rope_base: 100000.0,
        ..ModelOptions::default()
    };
    let model = Model::new(&options).unwrap();
    assert_eq!(model.canonical().unwrap().len(), 112);
    assert_eq!(hex(&model.fingerprint().unwrap()), "20259ad5389b8b5f1ce670669da7a0da");
    vector(
        &model,
        &Naming::default(),
        [
            "56c921061e63c97331e3a59715d1099a665585aa3880dafac5107aae839bb03b",
            "0b132405f5122541ba08cd14e16acce55ef14bfd06b0e952fb5c90d00d120886",
        ],
    );
    vector(
        &model,
        &Naming { namespace: b"tenant-a".to_vec(), salt: b"pepper".to_vec(), ..Naming::default() },
        [
            "1d31bfde7267df240436194b55b0735f636a8218c8c2f38cf4dab62a01094bd0",
            "c26272a154c561e5a041eb28efb78c07009e47ff142c443de5332049b27d4c6d",
        ],
    );
    let extras = vec![Extra { token: 3, data: vec![1, 2, 3] }, Extra { token: 17, data: b"image".to_vec() }];
    vector(
        &model,
        &Naming { extras, ..Naming::default() },
        [
            "5d3d84a4c100854c48814e6d931274f3d1233706e424cb35b7a021f63a1b9f8a",
            "bfca45666621d39303a958484e5f1932060a3e9344828b9f321681b2ce45b0e9",
        ],
    );
    assert_eq!(hex(&namespace_digest(b"", b"").unwrap()), "97f3e77796337b15dde4bf6fb3a6befa");
    assert_eq!(hex(&namespace_digest(b"tenant-a", b"pepper").unwrap()), "0f4d37556fc49ac97e98b140c1a41532");
    let hashes = |adapter: &[u8], namespace: &[u8]| block_hashes(&tokens(32), 16, adapter, namespace).unwrap();
    assert_eq!(hashes(b"", b""), [15310707395893867146, 13769157705258532664]);
    assert_eq!(hashes(b"my-lora", b""), [7774427462321301335, 13956809587245606139]);
    assert_eq!(hashes(b"", b"tenant-a"), [2130915519417463704, 13676355973429745432]);
}

#[test]
fn codec_lossy_and_described() {
    let codec = codec(&model(), "kivi4").unwrap();
    let (view, mut memory) = view_of(64);
    memory[..2].copy_from_slice(&[0, 0x7e]); // a NaN
    let (frame, report) = codec.encode(&view, &memory, &spec(0, 64, None)).unwrap();
    assert_eq!(report.nonfinite, 1);
    assert_eq!(report.frame_bytes, frame.len() as u64);
    assert!(frame.len() < memory.len() / 2, "{} bytes", frame.len());
    verify_frame(&frame).unwrap();
    assert!(describe_frame(&frame).unwrap().contains("kivi4"));
    let (_, mut loaded) = empty_view(64);
    let report = codec.decode(&frame, &view, &mut loaded, &spec(0, 64, None)).unwrap();
    assert_eq!(report.decoded_bytes, memory.len() as u64);
    for i in (2..memory.len()).step_by(2) {
        assert!((half(&memory[i..]) - half(&loaded[i..])).abs() < 0.15, "element {}", i / 2);
    }
}

#[test]
fn bad_input_arguments() {
    let (runtime, model) = (runtime(), model());
    let cache = Cache::open(&runtime, "mem:?capacity=1MiB").unwrap();
    let bad = Status::INVALID_ARGUMENT;
    let many = RuntimeOptions { threads: 1000, ..RuntimeOptions::default() };
    refused(Runtime::new(&many), bad, &["threads", "1000"]);
    refused(Model::new(&ModelOptions { layers: 0, ..model_options() }), bad, &["layers"]);
    refused(codec(&model, "zip"), Status::UNSUPPORTED, &["zip"]);
    refused(Cache::open(&runtime, "gopher:x"), Status::UNSUPPORTED, &["gopher"]);
    refused(Cache::open(&runtime, "mem:?capacity=many"), bad, &["capacity"]);
    assert!(Cache::open(&runtime, "").is_err());
    let odd = Naming { block_tokens: 17, ..Naming::default() };
    refused(model.keys(&tokens(16), &odd), bad, &["block_tokens", "17"]);
    refused(block_hashes(&tokens(16), 0, b"", b""), bad, &["block_tokens"]);
    let hasty = NodeOptions { stall_ms: 1, ..NodeOptions::default() };
    refused(Node::open(&runtime, &model, &hasty), bad, &["stall_ms", "1"]);
    refused(Verifier::new(&VerifierOptions::default()), bad, &[]);
    refused(Memory::new(0), bad, &["0"]);
    refused(cache.put_all(&[Key([1; 36]), Key([2; 36])], &[&[1u8][..]], WAIT), bad, &["lengths"]);
    refused(cache.put(&Key([1; 36]), &[]), bad, &["frame"]);
    refused(cache.put(&Key([0; 36]), &[1]), bad, &["key"]);
    // Below the idiomatic layer: records and keys of sizes that it never makes.
    let (mut text, record) = ([0u8; 256], [255u8; 8]);
    unsafe {
        assert_eq!(sys::kvtf_runtime_create(record.as_ptr(), 7, text.as_mut_ptr(), 256), sys::KVTF_INVALID_ARGUMENT);
        assert!(String::from_utf8_lossy(&text).contains("7 bytes"));
        assert_eq!(sys::kvtf_runtime_create(record.as_ptr(), 8, text.as_mut_ptr(), 256), sys::KVTF_INVALID_ARGUMENT);
        assert!(String::from_utf8_lossy(&text).contains("threads is -1"));
        assert_eq!(
            sys::kvtf_cache_match(0, [0u8; 35].as_ptr(), 35, text.as_mut_ptr(), 256),
            sys::KVTF_INVALID_ARGUMENT
        );
        assert!(String::from_utf8_lossy(&text).contains("35"));
        assert_eq!(
            sys::kvtf_defaults(99, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0),
            sys::KVTF_INVALID_ARGUMENT
        );
    }
}

#[test]
fn bad_input_frames() {
    let (cache, model) = (cache(), model());
    let raw = codec(&model, "raw").unwrap();
    let (keys, list) = frames(&model, 2);
    let (view, mut loaded) = empty_view(16);
    for at in [0, 40, list[0].len() / 2, list[0].len() - 1] {
        let mut damaged = list[0].clone();
        damaged[at] ^= 1;
        let status = verify_frame(&damaged).unwrap_err().status;
        assert!(status == Status::CORRUPT || status == Status::VERSION, "byte {}: {:?}", at, status);
        assert!(cache.put(&keys[0], &damaged).is_err(), "byte {}", at);
    }
    refused(verify_frame(&list[0][..100]), Status::CORRUPT, &[]);
    refused(cache.put(&keys[0], &list[0][..100]), Status::CORRUPT, &[]);
    refused(cache.put(&keys[1], &list[0]), Status::MISMATCH, &["key"]);
    let other_key = spec(0, 16, Some(keys[1]));
    refused(raw.decode(&list[0], &view, &mut loaded, &other_key), Status::MISMATCH, &["key"]);
    let other = Model::new(&ModelOptions { id: b"other weights".to_vec(), ..model_options() }).unwrap();
    let strange = codec(&other, "raw").unwrap();
    let right_key = spec(0, 16, Some(keys[0]));
    refused(strange.decode(&list[0], &view, &mut loaded, &right_key), Status::MISMATCH, &["model"]);
    refused(model.compare(&other), Status::MISMATCH, &["model_id"]);
    model.compare(&model).unwrap();
    assert_eq!(cache.matched(&keys).unwrap(), 0);
}

#[test]
fn bad_input_views() {
    let codec = codec(&model(), "raw").unwrap();
    let check = |status: Status, change: &dyn Fn(&mut View, &mut Vec<u8>)| {
        let (mut view, mut memory) = view_of(16);
        change(&mut view, &mut memory);
        refused(codec.encode(&view, &memory, &spec(0, 16, None)), status, &[]);
    };
    check(Status::OUT_OF_RANGE, &|_, memory| memory.truncate(memory.len() - 1));
    check(Status::OUT_OF_RANGE, &|_, memory| memory.clear());
    check(Status::OUT_OF_RANGE, &|view, _| view.bases[0] = -2);
    check(Status::OUT_OF_RANGE, &|view, _| view.bases[3] += 1);
    check(Status::OUT_OF_RANGE, &|view, _| view.token_stride[0] = -view.token_stride[0]);
    check(Status::OUT_OF_RANGE, &|view, _| view.token_stride[1] = i64::MAX);
    check(Status::INVALID_ARGUMENT, &|view, _| view.bases.truncate(3));
    check(Status::INVALID_ARGUMENT, &|view, _| view.element = Element(99));
    check(Status::INVALID_ARGUMENT, &|view, _| {
        view.block_table = vec![0];
        view.page_tokens = 8;
    });
    let (view, memory) = view_of(16);
    refused(codec.encode(&view, &memory, &spec(8, 16, None)), Status::OUT_OF_RANGE, &[]);
}

#[test]
fn bad_input_text() {
    let (runtime, model) = (runtime(), model());
    let mut seen = HashSet::new();
    for text in ["", "Zoë", "日本語", "a\0b", "a"] {
        let naming = Naming { namespace: text.into(), ..Naming::default() };
        assert!(seen.insert(model.keys(&tokens(16), &naming).unwrap()[0]), "the key of another: {}", text);
    }
    let meter = Meter::new(&runtime).unwrap();
    meter.begin("日本語 Zoë").unwrap().end().unwrap();
    assert!(meter.json().unwrap().contains("日本語 Zoë"));
    refused(meter.begin(""), Status::INVALID_ARGUMENT, &[]);
    refused(codec(&model, "zoë"), Status::UNSUPPORTED, &["zoë"]);
}

#[test]
fn wrong_size() {
    let (cache, model) = (cache(), model());
    let (keys, list) = frames(&model, 1);
    cache.put(&keys[0], &list[0]).unwrap();
    let mut small = vec![0; list[0].len() - 1];
    refused(cache.get_into(&keys[0], &mut small), Status::BUFFER_TOO_SMALL, &[&list[0].len().to_string()]);
    assert!(small.iter().all(|byte| *byte == 0), "the buffer was written");
    let mut whole = vec![0; list[0].len() + 8];
    assert_eq!(cache.get_into(&keys[0], &mut whole).unwrap(), list[0].len());
    assert!(whole[..list[0].len()] == list[0]);
}

#[test]
fn verifier_toy_engine() {
    let mut verifier = Verifier::new(&toy_options(6)).unwrap();
    let mut toy = Toy::new();
    refused(verifier.run(&mut toy), Status::TIMEOUT, &[]); // the first load fails and is asked for again
    verifier.run(&mut toy).unwrap();
    toy.check_committed();
    let stats = verifier.stats().unwrap();
    assert_eq!(stats.committed, TOKENS);
    assert!(stats.accepted > 0 && stats.accepted < stats.drafted);
    assert!(stats.acceptance > 0.0 && stats.acceptance < 1.0);
    refused(verifier.committed(), Status::INVALID_ARGUMENT, &[]);
}

#[test]
fn fidelity_classify() {
    let rows = [1f32, 2., 3., 3., 2., 1., 1., 2., 3., 3., 2., 1.];
    let (widths, places) = ([4, 4, 2, 2], [0, 1, 0, 1]);
    assert_eq!(classify_fidelity(&rows, &rows, 3, &widths, &places).unwrap(), (Fidelity::C, 0.0));
    let mut near = rows;
    near[0] += 0.25;
    near[3] += 0.125;
    assert_eq!(classify_fidelity(&rows, &near, 3, &widths, &places).unwrap(), (Fidelity::B, 0.5));
    refused(classify_fidelity(&rows, &near[..6], 3, &widths, &places), Status::INVALID_ARGUMENT, &[]);
}

#[test]
fn meter_json() {
    let meter = Meter::new(&runtime()).unwrap();
    for _ in 0..3 {
        let request = meter.begin("raw").unwrap();
        request.part(Part::QUEUE).unwrap();
        request.part(Part::PREFILL).unwrap();
        request.count(Counter::TOKENS_PROMPT, 100).unwrap();
        request.first_token().unwrap();
        refused(request.part(Part::PREFILL), Status::INVALID_ARGUMENT, &[]);
        request.end().unwrap();
        refused(request.end(), Status::NOT_FOUND, &[]);
    }
    meter.count(Counter::CHECKSUMS, 7).unwrap();
    refused(meter.count(Counter(999), 1), Status::INVALID_ARGUMENT, &[]);
    let json = meter.json().unwrap().replace(' ', "");
    for part in ["\"way\":\"raw\"", "\"requests\":3", "\"tokens_prompt\":300", "\"checksums\":7"] {
        assert!(json.contains(part), "{} lacks {}", json, part);
    }
    assert!(!meter.advice().unwrap().is_empty());
}
