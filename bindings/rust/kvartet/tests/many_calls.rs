//! Alone in its program, since it measures the process's memory.
mod kit;
use kit::*;
use kvartet::*;

fn resident_kb() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn many_calls_no_leak() {
    let calls = std::env::var("KVT_BINDINGS_CALLS").map_or(100_000, |n| n.parse().unwrap());
    let (runtime, model) = (runtime(), model());
    let cache = Cache::open(&runtime, "mem:?capacity=16MiB").unwrap();
    let (keys, list) = frames(&model, 1);
    let mut buf = vec![0; list[0].len()];
    let mut work = |calls: usize| {
        for _ in 0..calls / 10 {
            cache.put(&keys[0], &list[0]).unwrap();
            cache.get_into(&keys[0], &mut buf).unwrap();
            refused(cache.get(&Key([9; 36])), Status::NOT_FOUND, &[]);
            codec(&model, "raw").unwrap();
            Verifier::new(&toy_options(4)).unwrap().next().unwrap();
            cache.submit_put(&keys, &slices(&list), WAIT).unwrap().wait(WAIT).unwrap();
            Calibration::new(&model, &CalibrationOptions::default()).unwrap();
            refused(codec(&model, "zip"), Status::UNSUPPORTED, &[]);
        }
    };
    work(calls / 10);
    let before = resident_kb();
    work(calls);
    let grown = resident_kb() - before;
    assert!(grown < 8 * 1024, "{} calls left {} KB", calls, grown);
    assert!(runtime.memory_used().unwrap() < 1 << 20);
}
