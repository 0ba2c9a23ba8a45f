# shellcheck shell=bash
# Runs one area's benchmarks and keeps the figures: build/bench/AREA.md and AREA.json (or --json FILE). The area
# "transform" also measures the languages over C and a whole calibration.

# measure NAME COMMAND...: a part of an area, which writes build/bench/parts/NAME.json. Status 1: a bar is not met, which
# the report says; any other ends the run.
measure() {
  local name="$1" status=0
  shift
  rm -f "build/bench/parts/$name.json"
  "$@" || status=$?
  if [ "$status" -gt 1 ] || [ ! -f "build/bench/parts/$name.json" ]; then
    die "the part '$name' of the bench ended with status $status" "the messages above"
  fi
}

# The languages over C, on the library installed as a user has it.
bench_bindings() {
  (install_binding_packages) || die "a language is missing" "apt-get install golang default-jdk cargo"
  rm -rf build/bench/stage
  step bench-install "$BUILD_HINT" cmake --install build/release --prefix "$ROOT/build/bench/stage"
  measure bindings tests/bindings/bench.sh build/bench/stage --json "$ROOT/build/bench/parts/bindings.json"
}

# A whole calibration, as `kvartet calibrate` does it, from nothing.
bench_calibration() {
  rm -rf build/bench/profile
  mkdir -p build/bench/profile
  measure calibration "$KVARTET_COMMAND" calibrate --tokens 33000 --out build/bench/profile/bench.kvtp \
    --json build/bench/parts/calibration.json
}

run_bench() {
  local area=core json="" peer calibration=()
  while [ $# -gt 0 ]; do
    case "$1" in
      --json)
        [ $# -ge 2 ] || die "--json needs a file name" "./bootstrap bench core --json core.json"
        json="$(readlink -f -- "$2")" || die "--json: no such folder: '$2'" "an existing folder"
        shift
        ;;
      -*) die "bench does not know '$1'" "./bootstrap help" ;;
      *) area="$1" ;;
    esac
    shift
  done
  [ -f "tests/bench/CMakeLists.txt" ] || die "there are no benchmarks (tests/bench/CMakeLists.txt)" "./bootstrap test"
  install_deps
  # The peer is an option: without it the bar that needs it says so.
  [ "$area" != core ] || (install_deps --bench-peer) || say "the peer of the transfer benchmark is missing; its bar will have no peer"
  configure release
  compile release lib/all tools/all kvt_bench
  peer="$DEPS/mooncake/mooncake/transfer_engine_bench"
  if [ -x "$peer" ]; then export KVT_BENCH_PEER="$peer"; fi
  mkdir -p build/bench/parts
  measure "$area" build/release/tests/bench/kvt_bench "$area" --json "$ROOT/build/bench/parts/$area.json"
  local parts=("build/bench/parts/$area.json")
  if [ "$area" = transform ]; then
    bench_bindings
    parts+=(build/bench/parts/bindings.json)
    bench_calibration
    calibration=(--calibration build/bench/parts/calibration.json)
  fi
  python3 scripts/merge_bars.py "${calibration[@]}" "${json:-$ROOT/build/bench/$area.json}" \
    "$ROOT/build/bench/$area.md" "${parts[@]}"
}
