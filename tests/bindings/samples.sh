#!/bin/bash
# Runs the samples of the languages over an installed libkvartet: C, Java and Rust share cache directories one after
# another, in both orders, and the Go gateway serves a few prompts and stops. Usage: tests/bindings/samples.sh PREFIX
set -euo pipefail
root="$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)"
if ! { [ $# -eq 1 ] && [ -f "$1/include/kvartet/kvartet.h" ]; }; then
  echo "usage: tests/bindings/samples.sh PREFIX; PREFIX is an installed tree" >&2
  exit 2
fi
prefix="$(cd "$1" && pwd)"
# shellcheck source=tests/bindings/common.sh
. "$root/tests/bindings/common.sh"
bindings_env_go
bindings_env_rust
work="$(mktemp -d "${TMPDIR:-/tmp}/kvt-samples-XXXXXX")"
trap 'rm -rf "$work"' EXIT

"${CC:-cc}" -O2 -I"$prefix/include" "$root/samples/embed_cache.c" -o "$build/embed_cache" -L"$prefix/lib" -lkvartet \
  -Wl,-rpath,"$prefix/lib"
build_java
javac -Xlint:all -Werror -cp "$build/java/classes" -d "$build/java/sample" "$root/samples/java-cache/JavaCache.java"
(cd "$root/samples/rust-cache" && CARGO_TARGET_DIR="$build/rust-sample" cargo build -q --offline)
(cd "$root/samples/go-gateway" && go vet . && go build -o "$build/go-gateway" .)

in_c() { "$build/embed_cache" "$1"; }
in_java() {
  java "-Dkvartet.library=$build/java/libkvartet_jni.so" -cp "$build/java/classes:$build/java/sample" JavaCache "$1"
}
in_rust() { "$build/rust-sample/debug/rust-cache" "$1"; }

# wants TEXT COMMAND...: the command succeeds and says TEXT.
wants() {
  local said
  said="$("${@:2}")" || { echo "samples: '${*:2}' failed: $said" >&2; exit 1; }
  case "$said" in
    *"$1"*) printf '%s\n' "$said" ;;
    *) echo "samples: '${*:2}' did not say '$1': $said" >&2; exit 1 ;;
  esac
}

wants "4 of 4 blocks found again" in_c "$work/first"
wants "4 of 4 blocks found in" in_java "$work/first"
wants "4 of 4 blocks found in" in_rust "$work/first"
wants "0 of 4 blocks found in" in_rust "$work/second"
wants "4 of 4 blocks found in" in_java "$work/second"
wants "4 of 4 blocks found again" in_c "$work/second"
wants "0 of 4 blocks found in" in_java "$work/third"
wants "4 of 4 blocks found in" in_rust "$work/third"
wants '"way":"cache_hit"' timeout 60 "$build/go-gateway" -test
echo "samples: 9 passed, 0 failed"
