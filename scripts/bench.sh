# shellcheck shell=bash
# Runs one area's benchmark program and keeps its figures: build/bench/AREA.md and AREA.json (or --json FILE).
# An area is a program build/release/tests/bench/bench_AREA that takes --json FILE --markdown FILE [--peer PROGRAM].

run_bench() {
  local area=core json="" program arguments
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
  compile release lib/all tools/all tests/bench/all
  program="build/release/tests/bench/bench_$area"
  if [ ! -x "$program" ]; then
    die "there is no area '$area'" "one of: $(find build/release/tests/bench -maxdepth 1 -name 'bench_*' -type f -executable \
      -printf '%f ' | sed 's/bench_//g')"
  fi
  mkdir -p build/bench
  arguments=(--json "${json:-$ROOT/build/bench/$area.json}" --markdown "$ROOT/build/bench/$area.md")
  if [ -x "$DEPS/mooncake/mooncake/transfer_engine_bench" ]; then
    arguments+=(--peer "$DEPS/mooncake/mooncake/transfer_engine_bench")
  fi
  "$program" "${arguments[@]}"
}
