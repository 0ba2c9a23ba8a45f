#!/bin/bash
# Builds Go, Java and Rust over an installed libkvartet and runs every case of cases.toml in each.
# Usage: tests/bindings/run.sh PREFIX [go|java|rust ...]
# Prints a line a language that ends in "N passed, N failed". KVT_BINDINGS_CALLS: calls of the leak test.
set -uo pipefail
root="$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)"
if ! { [ $# -ge 1 ] && [ -f "$1/include/kvartet/kvartet.h" ]; }; then
  echo "usage: tests/bindings/run.sh PREFIX [go|java|rust ...]; PREFIX is an installed tree, for example build/stage" >&2
  exit 2
fi
prefix="$(cd "$1" && pwd)"
shift
[ $# -gt 0 ] || set -- go java rust
# shellcheck source=tests/bindings/common.sh
. "$root/tests/bindings/common.sh"
export KVT_BINDINGS_CALLS="${KVT_BINDINGS_CALLS:-1000000}"

# summary LANGUAGE LOG PASSED FAILED: the line of a language, with its log when something failed.
failures=0
summary() {
  if [ "$4" != 0 ] || [ "$3" = 0 ]; then
    failures=1
    tail -n 60 "$2"
  fi
  echo "$1: $3 passed, $4 failed"
}

run_go() {
  bindings_env_go
  if (cd "$root/bindings/go" && go vet ./... && go test -count=1 -v ./...) >"$build/go.log" 2>&1; then broken=0; else broken=1; fi
  local passed failed
  passed="$(grep -c '^--- PASS' "$build/go.log")"
  failed="$(grep -c '^--- FAIL' "$build/go.log")"
  [ "$broken" = 0 ] || [ "$failed" != 0 ] || failed=1
  summary go "$build/go.log" "$passed" "$failed"
}

run_java() {
  # The whole heap is resident from the start, so that what grows is native memory: the leak test looks at it.
  local heap=(-Xms256m -Xmx256m -XX:+AlwaysPreTouch)
  build_java >"$build/java.log" 2>&1 &&
    javac -Xlint:all -Werror -cp "$build/java/classes" -d "$build/java/test" "$root"/bindings/java/test/io/kvartet/*.java \
      >>"$build/java.log" 2>&1 &&
    java "${heap[@]}" -Xcheck:jni "-Dkvartet.library=$build/java/libkvartet_jni.so" -cp "$build/java/classes:$build/java/test" \
      io.kvartet.RunCases >>"$build/java.log" 2>&1
  local status=$? line
  line="$(sed -n 's/^java: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$build/java.log")"
  [ -n "$line" ] || line="0 1"
  [ "$status" = 0 ] || [ "${line#* }" != 0 ] || line="${line% *} 1"
  summary java "$build/java.log" "${line% *}" "${line#* }"
}

run_rust() {
  bindings_env_rust
  if (cd "$root/bindings/rust" && cargo test --offline --tests) >"$build/rust.log" 2>&1; then broken=0; else broken=1; fi
  local passed failed
  passed="$(grep -c '^test .* ok$' "$build/rust.log")"
  failed="$(grep -c '^test .* FAILED$' "$build/rust.log")"
  [ "$broken" = 0 ] || [ "$failed" != 0 ] || failed=1
  summary rust "$build/rust.log" "$passed" "$failed"
}

python3 "$root/tests/bindings/check_cases.py" || failures=1
for language in "$@"; do
  case "$language" in
    go) run_go ;;
    java) run_java ;;
    rust) run_rust ;;
    *)
      echo "no language $language" >&2
      exit 2
      ;;
  esac
done
exit "$failures"
