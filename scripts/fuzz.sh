# shellcheck shell=bash
# Runs each libFuzzer target of tests/fuzz for a bounded time, as many at once as there are cores. What they learn is
# kept in build/fuzz/corpus, what they find in build/fuzz/<target>-*.

# shellcheck source=scripts/tally.sh
. scripts/tally.sh

# fuzz_target NAME SECONDS: status 0 when nothing was found.
fuzz_target() {
  local name="$1" seconds="$2"
  mkdir -p "build/fuzz/corpus/$name"
  step "$name" "build/fuzz/tests/fuzz/$name with the file build/fuzz/$name-* that the log names" \
    "build/fuzz/tests/fuzz/$name" -max_total_time="$seconds" -timeout=20 -max_len=16384 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
}

# count_of LOG STAT: a figure of libFuzzer's final statistics.
count_of() { awk -v stat="stat::$2:" '$1 == stat { print $2 }' "$1"; }

run_fuzz() {
  local seconds="${1:-60}" source name names=() log
  # Enough for a good trace; the build takes half of what -O2 -g does.
  local flags="-O1 -gline-tables-only"
  if [[ ! "$seconds" =~ ^[1-9][0-9]{0,6}$ ]] || [ $# -gt 1 ]; then
    die "fuzz takes a number of seconds, got '$*'" "./bootstrap fuzz 60"
  fi
  step configure-fuzz "./bootstrap deps" cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Fuzz \
    -DCMAKE_C_FLAGS_FUZZ="$flags" -DCMAKE_CXX_FLAGS_FUZZ="$flags" \
    -DCMAKE_C_COMPILER=/usr/bin/clang-14 -DCMAKE_CXX_COMPILER=/usr/bin/clang++-14 -DKVARTET_FUZZ=ON \
    -DKVARTET_SANITIZE=address,undefined -DKVARTET_TOOLS=OFF -DKVARTET_BENCH=OFF
  say "building the fuzz targets"
  step build-fuzz "$BUILD_HINT" ninja -C build/fuzz -j "$JOBS" tests/fuzz/all
  for source in tests/fuzz/fuzz_*.cc; do names+=("$(basename "$source" .cc)"); done
  say "fuzzing ${#names[@]} targets for $seconds s each, $JOBS at a time"
  rm -f build/fuzz/*.passed
  for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n || true; done
    { if fuzz_target "$name" "$seconds"; then touch "build/fuzz/$name.passed"; fi; } &
  done
  wait
  for name in "${names[@]}"; do
    log="$LOGS/$name.log"
    if [ -f "build/fuzz/$name.passed" ]; then
      PASSED=$((PASSED + 1))
      say "$name: $(count_of "$log" number_of_executed_units) runs, $(count_of "$log" average_exec_per_sec) a second"
    else
      tally_fail "$name: the log is $log"
    fi
  done
  tally_end
}
