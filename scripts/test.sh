# shellcheck shell=bash
# Every test: release, ASan+UBSan, TSan, the installed tree, the symbol list, the ABI, a short demo.
# A part that fails does not keep the others from running; the last line counts all.

# shellcheck source=scripts/tally.sh
. scripts/tally.sh

# Address-space randomisation can collide with ThreadSanitizer's shadow memory.
without_randomisation() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

# suite NAME PRESET CTEST_ARGS...: runs ctest, adds its counts.
suite() {
  local name="$1" preset="$2" report status=0 counts
  shift 2
  report="$LOGS/$name.xml"
  rm -f "$report"
  say "testing $name"
  without_randomisation ctest --test-dir "build/$preset" --output-on-failure --timeout 600 -j "$JOBS" \
    --output-junit "$report" "$@" >"$LOGS/$name.log" 2>&1 </dev/null || status=$?
  if ! counts="$(python3 scripts/count_tests.py "$report")"; then
    tail -n 30 "$LOGS/$name.log"
    tally_fail "$name: ctest wrote no report (status $status)"
    return
  fi
  # shellcheck disable=SC2086
  tally_add $counts
  if [ "$status" -ne 0 ]; then
    tail -n 150 "$LOGS/$name.log"
    say "the whole output is in $LOGS/$name.log"
    case " $counts" in *' 0 failed') tally_fail "$name: ctest ended with status $status" ;; esac
  fi
}

# prepare PRESET CMAKE_ARGS...: configure and compile; a failure counts as one failed test.
prepare() {
  local preset="$1"
  shift
  if (configure "$preset" "$@" && compile "$preset"); then return 0; fi
  tally_fail "$preset does not build"
  return 1
}

SLOW_LABELS='^(engine|bench|installed|check)$'

test_release() {
  prepare release || return 0
  suite release release -LE '^(bench|installed)$'
  rm -rf build/stage
  if ! (step install "$BUILD_HINT" cmake --install build/release --prefix "$ROOT/build/stage"); then
    tally_fail "the release build does not install"
    return 0
  fi
  KVARTET_STAGE="$ROOT/build/stage" suite installed release -L '^installed$' --no-tests=error
  tally_run "exported symbols" scripts/check_symbols.sh build/stage
  tally_run "short demo" scripts/smoke_demo.sh "$KVARTET_COMMAND"
  (install_binding_packages) || say "a language is missing; its cases will fail"
  tally_run "Go, Java and Rust cases" tests/bindings/run.sh build/stage
  tally_run "Go, Java and Rust samples" tests/bindings/samples.sh build/stage
}

test_sanitizers() {
  export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:abort_on_error=0
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  local preset
  for preset in asan tsan; do
    prepare "$preset" -DKVARTET_TOOLS=OFF -DKVARTET_BENCH=OFF || continue
    suite "$preset" "$preset" -LE "$SLOW_LABELS" --no-tests=error
    # The sanitizers add nothing to the ABI, and this library has the debug information that tells of it.
    if [ "$preset" = asan ]; then
      tally_run "public ABI (scripts/check_abi.py)" python3 scripts/check_abi.py build/asan/lib/libkvartet.so.0
    fi
  done
}

run_tests() {
  [ $# -eq 0 ] || die "test takes no arguments, got '$*'" "ctest --preset release -R NAME for one test"
  mkdir -p "$LOGS"
  test_release
  test_sanitizers
  tally_end
}
