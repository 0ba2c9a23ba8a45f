//! The cases about the lives of objects and threads.
mod kit;
use kit::*;
use kvartet::*;
use kvartet_sys as sys;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::thread;

#[test]
fn closed_handle() {
    let model = model();
    let (keys, list) = frames(&model, 1);
    let cache = cache();
    cache.close().unwrap();
    cache.close().unwrap();
    refused(cache.put(&keys[0], &list[0]), Status::CLOSED, &["cache"]);
    refused(cache.get(&keys[0]), Status::CLOSED, &[]);
    refused(cache.matched(&keys), Status::CLOSED, &[]);
    refused(cache.stats(), Status::CLOSED, &[]);
    refused(cache.submit_put(&keys, &slices(&list), WAIT), Status::CLOSED, &[]);
    let gone = kit::model();
    gone.close().unwrap();
    refused(codec(&gone, "raw"), Status::CLOSED, &["model"]);
    refused(gone.fingerprint(), Status::CLOSED, &[]);
    let mut verifier = Verifier::new(&toy_options(4)).unwrap();
    verifier.close().unwrap();
    refused(verifier.next(), Status::CLOSED, &[]);
    // Every other kind of object.
    let runtime = runtime();
    let node = Node::open(&runtime, &model, &NodeOptions::default()).unwrap();
    let mut stream = node.open_stream(&keys[0]).unwrap();
    stream.close().unwrap();
    refused(stream.append(&list[0]), Status::CLOSED, &["stream"]);
    refused(stream.finish(), Status::CLOSED, &[]);
    node.close().unwrap();
    refused(node.connect("tcp://127.0.0.1:1", WAIT), Status::CLOSED, &["node"]);
    refused(node.open_stream(&keys[0]), Status::CLOSED, &[]);
    let calibration = Calibration::new(&model, &CalibrationOptions::default()).unwrap();
    calibration.close().unwrap();
    refused(calibration.finish(), Status::CLOSED, &["calibration"]);
    refused(calibration.progress(), Status::CLOSED, &[]);
    let memory = Memory::new(16).unwrap();
    memory.close().unwrap();
    refused(memory.read(0, &mut []), Status::CLOSED, &["memory"]);
    let meter = Meter::new(&runtime).unwrap();
    meter.close().unwrap();
    refused(meter.json(), Status::CLOSED, &["meter"]);
    let open = kit::cache();
    let operation = open.submit_put(&keys, &slices(&list), WAIT).unwrap();
    operation.close().unwrap();
    refused(operation.wait(WAIT), Status::CLOSED, &["operation"]);
    refused(operation.cancel(), Status::CLOSED, &[]);
    // Below the layer: an invented handle is an error of the library's own.
    for handle in [4 << 56 | 9999, 0, -5, i64::MAX] {
        let key = keys[0].0;
        let status =
            unsafe { sys::kvtf_cache_get(handle, key.as_ptr(), 36, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0) };
        assert!(status == sys::KVTF_STALE_HANDLE || status == sys::KVTF_WRONG_HANDLE, "{}: {}", handle, status);
    }
}

#[test]
fn parent_with_children() {
    let (runtime, model) = (runtime(), model());
    let cache = Cache::open(&runtime, "mem:?capacity=16MiB").unwrap();
    let (keys, list) = frames(&model, 1);
    refused(runtime.close(), Status::BUSY, &["1 open"]);
    let operation = cache.submit_put(&keys, &slices(&list), WAIT).unwrap();
    refused(cache.close(), Status::BUSY, &[]);
    cache.put(&keys[0], &list[0]).unwrap();
    let listen = "tcp://127.0.0.1:0".into();
    let server = Node::open(&runtime, &model, &NodeOptions { listen, ..NodeOptions::default() }).unwrap();
    server.serve(&cache).unwrap();
    operation.close().unwrap();
    refused(cache.close(), Status::BUSY, &[]);
    refused(model.close(), Status::BUSY, &[]);
    server.close().unwrap();
    cache.close().unwrap();
    runtime.close().unwrap();
    // A parent that is dropped first lives as long as its children.
    let orphan = {
        let runtime = kit::runtime();
        Cache::open(&runtime, "mem:?capacity=16MiB").unwrap()
    };
    orphan.put(&keys[0], &list[0]).unwrap();
}

#[test]
fn concurrent_close() {
    let model = model();
    let (keys, list) = frames(&model, 1);
    for _ in 0..20 {
        let cache = cache();
        let operation = cache.submit_put(&keys, &slices(&list), WAIT).unwrap();
        thread::scope(|scope| {
            for worker in 0..8 {
                let (cache, operation, keys, list) = (&cache, &operation, &keys, &list);
                scope.spawn(move || {
                    for _ in 0..50 {
                        let done = match worker % 4 {
                            0 => cache.close(),
                            1 => cache.put(&keys[0], &list[0]),
                            2 => operation.close(),
                            _ => operation.wait(WAIT).map(|_| ()),
                        };
                        if let Err(error) = done {
                            assert!(error.status == Status::BUSY || error.status == Status::CLOSED, "{}", error);
                        }
                    }
                });
            }
        });
        operation.close().unwrap();
        cache.close().unwrap();
    }
}

#[test]
fn concurrent_calls() {
    let (cache, model) = (cache(), model());
    let (keys, list) = frames(&model, 8);
    thread::scope(|scope| {
        for i in 0..8 {
            let (cache, model, keys, list) = (&cache, &model, &keys, &list);
            scope.spawn(move || {
                let name = format!("no-codec-{}", i);
                for _ in 0..100 {
                    cache.put(&keys[i], &list[i]).unwrap();
                    assert!(cache.get(&keys[i]).unwrap() == list[i]);
                    refused(codec(model, &name), Status::UNSUPPORTED, &[&name]);
                }
            });
        }
    });
}

/// In Rust an object that is dropped without `close` ends there; a leak needs `mem::forget`.
#[test]
fn leak_reported() {
    let (runtime, model) = (runtime(), model());
    let (keys, list) = frames(&model, 1);
    let cache = Cache::open(&runtime, "mem:?capacity=16MiB").unwrap();
    let operation = cache.submit_put(&keys, &slices(&list), WAIT).unwrap();
    let handle = operation.id();
    drop(operation);
    let status = unsafe { sys::kvtf_operation_results(handle, std::ptr::null_mut(), 0, std::ptr::null_mut(), 0) };
    assert_eq!(status, sys::KVTF_STALE_HANDLE);
    drop(cache);
    runtime.close().unwrap(); // nothing of it is open
}

#[test]
fn host_failure_passes() {
    for step in ["draft", "verify"] {
        let mut verifier = Verifier::new(&toy_options(6)).unwrap();
        let mut toy = Toy::new();
        toy.loads = 1;
        toy.fail_at = Some(step);
        let panic = catch_unwind(AssertUnwindSafe(|| verifier.run(&mut toy))).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), &format!("engine: {}", step));
        toy.fail_at = None;
        verifier.run(&mut toy).unwrap(); // the action that was due is due again
        toy.check_committed();
    }
}
