//! Compiles the facade and links libkvartet. KVARTET_PREFIX names the installed tree; else pkg-config is asked.
use std::env;
use std::path::PathBuf;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("cannot start {:?}: {}", command, e));
    if !output.status.success() {
        panic!("{:?} failed: {}", command, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pkg_config(option: &str, prefix: &str) -> Vec<String> {
    run(Command::new("pkg-config").args([option, "kvartet"]))
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(prefix).map(String::from))
        .collect()
}

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let swig = here.join("../../swig");
    let (includes, libraries) = match env::var("KVARTET_PREFIX") {
        Ok(prefix) => (vec![format!("{}/include", prefix)], vec![format!("{}/lib", prefix)]),
        Err(_) => (pkg_config("--cflags-only-I", "-I"), pkg_config("--libs-only-L", "-L")),
    };
    let object = out.join("kvartet_flat.o");
    let archive = out.join("libkvartet_flat.a");
    let mut compile = Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()));
    compile.args(["-std=gnu11", "-O2", "-fPIC", "-Wall", "-c", "-o"]).arg(&object);
    compile.arg("-I").arg(&swig);
    for include in &includes {
        compile.arg("-I").arg(include);
    }
    run(compile.arg(swig.join("kvartet_flat.c")));
    run(Command::new("ar").arg("crs").arg(&archive).arg(&object));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=kvartet_flat");
    for library in &libraries {
        println!("cargo:rustc-link-search=native={}", library);
    }
    println!("cargo:rustc-link-lib=dylib=kvartet");
    println!("cargo:rerun-if-env-changed=KVARTET_PREFIX");
    println!("cargo:rerun-if-changed={}", swig.display());
}
