#!/bin/bash
# Generates what is checked in for Go, Java and Rust from kvartet.i and kvartet_flat.h.
# Usage: bindings/swig/generate.sh           writes
#        bindings/swig/generate.sh --check   fails when the tree differs from what would be written
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

SWIG_VERSION=4.1.0
die() {
  echo "generate: $1" >&2
  echo "  $2" >&2
  exit 1
}
command -v swig >/dev/null || die "swig is missing" "apt-get install swig"
version="$(swig -version | sed -n 's/^SWIG Version //p')"
[ "$version" = "$SWIG_VERSION" ] || die "SWIG is $version, not $SWIG_VERSION" "use Debian 12's swig; its output is checked in"

work="$(mktemp -d "${TMPDIR:-/tmp}/kvt-swig-XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/go" "$work/java" "$work/rust"

swig -go -cgo -intgosize 64 -package flat -module flat -o "$work/go/flat_wrap.c" -outdir "$work/go" kvartet.i
swig -java -package io.kvartet.internal.generated -module Flat -o "$work/java/flat_wrap.c" -outdir "$work/java" kvartet.i
swig -xml -o "$work/flat.xml" kvartet.i
python3 rust_sys.py "$work/flat.xml" >"$work/rust/mod.rs"

# No path of the machine that generated it.
! grep -rIl "$work" "$work/go" "$work/java" "$work/rust" || die "a generated file names $work" "fix this script"

declare -A target=([go]=../go/internal/generated/flat [java]=../java/src/io/kvartet/internal/generated
  [rust]=../rust/kvartet-sys/src/generated)
for language in go java rust; do
  for file in "$work/$language"/*; do
    to="${target[$language]}/$(basename "$file")"
    if [ "${1:-}" = --check ]; then
      diff -u "$to" "$file" || die "$to differs from kvartet_flat.h" "bindings/swig/generate.sh, then commit the result"
    else
      mkdir -p "${target[$language]}"
      cmp -s "$file" "$to" || cp "$file" "$to"
    fi
  done
done
