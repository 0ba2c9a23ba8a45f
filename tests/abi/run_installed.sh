#!/bin/bash
# Builds and runs what users would, against an installed Kvartet: the plain-C tests and the samples by find_package, a
# sample by pkg-config, and every C snippet of the documentation. One line a test; exits non-zero if any fails.
# Usage: run_installed.sh PREFIX|--from-environment WORK     (--from-environment: the prefix is $KVARTET_STAGE)
set -uo pipefail
root="$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")"
prefix="${1:?usage: run_installed.sh PREFIX|--from-environment WORK}"
work="${2:?usage: run_installed.sh PREFIX|--from-environment WORK}"
if [ "$prefix" = --from-environment ]; then
  if [ -z "${KVARTET_STAGE:-}" ]; then
    echo "skipped: KVARTET_STAGE does not name an installed prefix; ./bootstrap test sets it"
    exit 77
  fi
  prefix="$KVARTET_STAGE"
fi
prefix="$(readlink -f "$prefix")"
library="$(find "$prefix" -name libkvartet.so -print -quit)"
if [ -z "$library" ]; then
  echo "no libkvartet.so below $prefix: cmake --install build/release --prefix $prefix"
  exit 1
fi
libdir="$(dirname "$library")"
rm -rf "$work"
mkdir -p "$work"
work="$(readlink -f "$work")"
passed=0
failed=0

# try NAME COMMAND...: one line for the test, its output only when it fails.
try() {
  local name="$1" log status=0
  log="$work/$(tr -c 'a-zA-Z0-9\n' _ <<<"$1").log"
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
    echo "ok $name"
  else
    failed=$((failed + 1))
    echo "FAILED $name (status $status)"
    tail -n 60 "$log"
  fi
  return "$status"
}

# build NAME SOURCE: configures and builds a CMake project that uses find_package(kvartet).
build() {
  try "configure $1" cmake -S "$2" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" &&
    try "build $1" cmake --build "$work/$1"
}

if build tests "$root/tests/abi/installed"; then
  for test in "$work"/tests/installed_*; do
    [ -x "$test" ] && [ -f "$test" ] && try "$(basename "$test")" timeout 300 "$test"
  done
fi

# Programs run in an empty folder of their own.
mkdir -p "$work/run"
if build samples "$root/samples"; then
  for sample in "$root"/samples/*.c; do
    name="$(basename "$sample" .c)"
    try "sample $name" timeout 120 env -C "$work/run" "$work/samples/$name"
  done
fi

# cc_pkg SOURCE OUTPUT: compiles as the documentation says, with nothing but pkg-config.
cc_pkg() {
  local flags
  flags="$(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags --libs kvartet)" || return
  # shellcheck disable=SC2086
  gcc -std=c99 -Wall -Wextra -pedantic -Werror -D_POSIX_C_SOURCE=200809L "$1" -o "$2" $flags -Wl,-rpath,"$libdir"
}

# compile_and_run NAME SOURCE: by pkg-config.
compile_and_run() {
  try "compile $1 (pkg-config)" cc_pkg "$2" "$work/run/$1" && try "run $1" timeout 120 env -C "$work/run" "$work/run/$1"
}

compile_and_run embed_cache_pkg "$root/samples/embed_cache.c"
try "documentation shows the compiled snippets" python3 "$root/docs/extract_snippets.py" --check
for snippet in "$root"/docs/snippets/*.c; do
  compile_and_run "snippet_$(basename "$snippet" .c)" "$snippet"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
