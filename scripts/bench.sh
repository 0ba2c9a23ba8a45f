# shellcheck shell=bash
# Runs one area's benchmarks and keeps the figures: build/bench/AREA.md and AREA.json (or --json FILE).

run_bench() {
  local area=core json="" peer
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
  # The peer is an option: without it the bars that need it say so.
  (install_deps --bench-peer) || say "the peer of the transfer benchmark is missing; its bar will have no peer"
  configure release
  compile release lib/all tools/all kvt_bench
  mkdir -p build/bench
  peer="$DEPS/mooncake/mooncake/transfer_engine_bench"
  if [ -x "$peer" ]; then export KVT_BENCH_PEER="$peer"; fi
  build/release/tests/bench/kvt_bench "$area" --json "${json:-$ROOT/build/bench/$area.json}" \
    --markdown "$ROOT/build/bench/$area.md"
}
