//! The cases about profiles, rotary embeddings and streams.
mod kit;
use kit::*;
use kvartet::*;

/// Rows from 1 to 2 that vary in few directions, as those of a text do.
fn document(n: usize, seed: i32) -> (View, Vec<u8>) {
    let (view, mut memory) = empty_view(n);
    let row = view.token_stride[0] as usize / 2;
    for i in 0..memory.len() / 2 {
        let (token, channel) = ((i / row % n) as i32, (i % row) as i32);
        let mantissa = 512 + (token * seed * 13 % 31 - 15) * (channel % 17 - 8) * 4;
        memory[2 * i..2 * i + 2].copy_from_slice(&(0x3c00 | mantissa as u16).to_le_bytes());
    }
    (view, memory)
}

/// Of two documents.
fn calibrated(model: &Model) -> (Calibration, Vec<u8>) {
    let calibration = Calibration::new(model, &CalibrationOptions::default()).unwrap();
    for seed in 1..3 {
        let (view, memory) = document(128, seed);
        calibration.add(&view, &memory, 0, 128).unwrap();
    }
    let profile = calibration.finish().unwrap();
    (calibration, profile)
}

fn transform(model: &Model, profile: &[u8], ratio: u32) -> Result<Codec> {
    Codec::new(model, "transform", &CodecOptions { ratio, profile: profile.to_vec(), ..CodecOptions::default() })
}

#[test]
fn calibrate_and_transform() {
    let model = model();
    assert_eq!(CalibrationOptions::default().ratio_min, 4);
    // The codec's own.
    assert_eq!(CodecOptions::default().ratio, 0);
    let (calibration, profile) = calibrated(&model);
    let seen = CalibrationInfo { documents: 2, tokens: 2 * 124, nonfinite: 0 };
    assert_eq!(calibration.progress().unwrap(), seen);
    let restored = Calibration::restore(&model, &calibration.save().unwrap()).unwrap();
    assert!(restored.finish().unwrap() == profile);
    assert!(describe_profile(&profile).unwrap().contains("groups"));
    let codec = transform(&model, &profile, 8).unwrap();
    let (view, memory) = document(128, 1);
    let (frame, _) = codec.encode(&view, &memory, &spec(0, 128, None)).unwrap();
    assert!(frame.len() < memory.len() / 5, "{} bytes", frame.len());
    let (_, mut loaded) = empty_view(128);
    let report = codec.decode(&frame, &view, &mut loaded, &spec(0, 128, None)).unwrap();
    assert_eq!(report.decoded_bytes, memory.len() as u64);
    let off = |i: usize| (half(&memory[i..]) - half(&loaded[i..])).abs();
    let mean = (0..memory.len()).step_by(2).map(off).sum::<f64>() / (memory.len() / 2) as f64;
    assert!(mean < 0.05, "elements are off by {}", mean);
}

#[test]
fn profile_missing() {
    let (cache, model) = (cache(), model());
    let (_, profile) = calibrated(&model);
    let (view, memory) = document(64, 1);
    let (frame, _) = transform(&model, &profile, 8).unwrap().encode(&view, &memory, &spec(0, 64, None)).unwrap();
    let (_, mut loaded) = empty_view(64);
    let raw = codec(&model, "raw").unwrap();
    refused(raw.decode(&frame, &view, &mut loaded, &spec(0, 64, None)), Status::PROFILE_MISSING, &["profile"]);
    // The profile travels like a frame.
    let key = profile_key(&profile_fingerprint(&profile).unwrap()).unwrap();
    cache.put(&key, &wrap_profile(&profile, None).unwrap()).unwrap();
    let fetched = unwrap_profile(&cache.get(&key).unwrap()).unwrap();
    assert!(fetched == profile);
    let other = transform(&model, &fetched, 4).unwrap();
    other.decode(&frame, &view, &mut loaded, &spec(0, 64, None)).unwrap();
}

#[test]
fn bad_input_profiles() {
    let model = model();
    let (calibration, profile) = calibrated(&model);
    let bad = Status::INVALID_ARGUMENT;
    refused(transform(&model, &[], 8), bad, &["profile"]);
    refused(transform(&model, &profile, 3), bad, &["ratio"]);
    refused(transform(&model, &profile, 33), bad, &["ratio"]);
    for at in [0, 8, profile.len() / 2, profile.len() - 1] {
        let mut damaged = profile.clone();
        damaged[at] ^= 1;
        let status = transform(&model, &damaged, 8).err().expect("not refused").status;
        assert!(status == Status::CORRUPT || status == Status::VERSION, "byte {}: {:?}", at, status);
    }
    refused(profile_fingerprint(&profile[..profile.len() / 2]), Status::CORRUPT, &[]);
    let other = Model::new(&ModelOptions { id: b"other weights".to_vec(), ..model_options() }).unwrap();
    refused(transform(&other, &profile, 8), Status::MISMATCH, &[]);
    let saved = calibration.save().unwrap();
    refused(Calibration::restore(&other, &saved), Status::MISMATCH, &[]);
    refused(Calibration::restore(&model, &saved[1..]), Status::CORRUPT, &[]);
    refused(Calibration::restore(&model, &[]), Status::CORRUPT, &[]);
    let low = CalibrationOptions { ratio_min: 3, ..CalibrationOptions::default() };
    refused(Calibration::new(&model, &low), bad, &["ratio_min"]);
    let empty = Calibration::new(&model, &CalibrationOptions::default()).unwrap();
    refused(empty.finish(), Status::OUT_OF_RANGE, &["64"]);
    let (view, memory) = document(16, 1);
    refused(empty.add(&view, &memory, 0, 17), Status::OUT_OF_RANGE, &["token"]);
    refused(empty.add(&view, &memory[1..], 0, 16), Status::OUT_OF_RANGE, &["memory"]);
    refused(profile_key(&[1]), bad, &["fingerprint"]);
    let (_, list) = frames(&model, 1);
    refused(unwrap_profile(&list[0]), Status::MISMATCH, &[]);
}

#[test]
fn rope_and_shard() {
    let options = ModelOptions { rope_style: Rope::HALF_SPLIT, rope_dims: 32, rope_base: 10000.0, ..model_options() };
    let model = Model::new(&options).unwrap();
    let whole = Shard { layer_begin: 0, layer_end: 2, head_begin: 0, head_end: 2, block_tokens: 16 };
    assert_eq!(model.shard().unwrap(), whole);
    let (mut view, before) = document(32, 1);
    let mut memory = before.clone();
    view.first_position = 100;
    let turned = 8 * view.token_stride[0] as usize..32 * view.token_stride[0] as usize;
    model.rope(&view, &mut memory, 8, 24, true).unwrap();
    assert!(memory[..turned.start] == before[..turned.start]);
    assert!(memory[turned.clone()] != before[turned]);
    model.rope(&view, &mut memory, 8, 24, false).unwrap();
    for i in (0..memory.len()).step_by(2) {
        assert!((half(&memory[i..]) - half(&before[i..])).abs() < 0.01, "element {}", i / 2);
    }
    refused(model.rope(&view, &mut memory, 8, 25, true), Status::OUT_OF_RANGE, &["token"]);
    refused(model.rope(&view, &mut memory[1..], 0, 1, true), Status::OUT_OF_RANGE, &["memory"]);
}

/// Polls until `parts` of an operation are in place; false at its end.
fn await_part(node: &Node, operation: &Operation, parts: u64) -> bool {
    while node.wait_event(WAIT).unwrap() {
        for completion in node.poll(1).unwrap() {
            assert_eq!(completion.id, operation.id());
            if !completion.part || completion.items_ok == parts {
                return completion.part;
            }
        }
    }
    panic!("no part came");
}

/// A node, a client of it, and the peer that the client sees.
fn pair(model: &Model) -> (Node, Node, Peer) {
    let runtime = runtime();
    let listen = "tcp://127.0.0.1:0".into();
    let server = Node::open(&runtime, model, &NodeOptions { listen, ..NodeOptions::default() }).unwrap();
    let client = Node::open(&runtime, model, &NodeOptions::default()).unwrap();
    let peer = client.connect(&server.url().unwrap(), WAIT).unwrap();
    (server, client, peer)
}

#[test]
fn stream_by_layers() {
    let model = model();
    let (server, client, peer) = pair(&model);
    let (codec, key) = (codec(&model, "raw").unwrap(), Key([5; 36]));
    let (view, memory) = view_of(32);
    let (_, mut loaded) = empty_view(32);
    let operation = peer.submit_pull_stream(&key, 2 * memory.len(), 8, WAIT).unwrap(); // before it is opened
    let mut stream = server.open_stream(&key).unwrap();
    for layer in 0..2 {
        let whole = spec(0, 32, Some(key));
        let spec = Spec { layer_begin: layer, layer_end: layer + 1, ..whole };
        let (frame, _) = codec.encode(&view, &memory, &spec).unwrap();
        stream.append(&frame).unwrap();
        assert!(await_part(&client, &operation, u64::from(layer) + 1));
        let got = operation.frame(layer as usize).unwrap();
        assert!(got == frame, "layer {}", layer);
        codec.decode(&got, &view, &mut loaded, &spec).unwrap();
    }
    refused(operation.frame(2), Status::OUT_OF_RANGE, &["2 parts"]);
    stream.finish().unwrap();
    assert_eq!(operation.wait(WAIT).unwrap().items_ok, 2);
    assert!(loaded == memory);
    refused(stream.append(&operation.frame(1).unwrap()), Status::CLOSED, &[]);
}

#[test]
fn stream_ends_early() {
    let model = model();
    let (server, client, peer) = pair(&model);
    let (_, list) = frames(&model, 2);
    for abort in [true, false] {
        let key = Key([if abort { 1 } else { 2 }; 36]);
        let mut stream = server.open_stream(&key).unwrap();
        refused(server.open_stream(&key), Status::ALREADY_EXISTS, &[]);
        refused(stream.append(&list[0][..100]), Status::CORRUPT, &[]);
        let operation = peer.submit_pull_stream(&key, 1 << 20, 4, WAIT).unwrap();
        stream.append(&list[0]).unwrap();
        assert!(await_part(&client, &operation, 1));
        if abort {
            stream.abort().unwrap();
        } else {
            drop(stream);
        }
        refused(operation.wait(WAIT), Status::CANCELLED, &[]);
        assert!(operation.frame(0).unwrap() == list[0]);
    }
    let key = Key([9; 36]);
    let mut stream = server.open_stream(&key).unwrap();
    stream.append(&list[0]).unwrap();
    stream.append(&list[1]).unwrap();
    stream.finish().unwrap();
    let operation = peer.submit_pull_stream(&key, 1 << 20, 1, WAIT).unwrap();
    refused(operation.wait(WAIT), Status::BUFFER_TOO_SMALL, &[]);
    refused(peer.submit_pull_stream(&key, 0, 1, WAIT), Status::INVALID_ARGUMENT, &["bytes is 0"]);
}
