#!/bin/bash
# Measures put and get of 64 KiB blocks in Go, Java and Rust over the time of C, in turn, and writes the bars.
# Usage: tests/bindings/bench.sh PREFIX [--json FILE] [--markdown FILE] [--rounds N]
set -euo pipefail
root="$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)"
if ! { [ $# -ge 1 ] && [ -f "$1/include/kvartet/kvartet.h" ]; }; then
  echo "usage: tests/bindings/bench.sh PREFIX [--json FILE] [--markdown FILE] [--rounds N]" >&2
  exit 2
fi
prefix="$(cd "$1" && pwd)"
shift
# shellcheck source=tests/bindings/common.sh
. "$root/tests/bindings/common.sh"
bindings_env_go
bindings_env_rust
here="$root/tests/bindings/bench"
"${CC:-cc}" -O2 -I"$prefix/include" "$here/bench.c" -o "$build/bench_c" -L"$prefix/lib" -lkvartet -Wl,-rpath,"$prefix/lib"
(cd "$here/go" && go build -o "$build/bench_go" .)
build_java
javac -Xlint:all -Werror -cp "$build/java/classes" -d "$build/java/bench" "$here/Bench.java"
(cd "$here/rust" && CARGO_TARGET_DIR="$build/rust-bench" cargo build -q --release --offline)
exec python3 "$here/bars.py" "$@" \
  "c=$build/bench_c" "go=$build/bench_go" \
  "java=java -Dkvartet.library=$build/java/libkvartet_jni.so -cp $build/java/classes:$build/java/bench Bench" \
  "rust=$build/rust-bench/release/bindings-bench"
