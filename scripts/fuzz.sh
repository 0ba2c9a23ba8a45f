# shellcheck shell=bash
# Runs each libFuzzer target of tests/fuzz for a bounded time; new findings stay in build/fuzz/.

run_fuzz() {
  local seconds="${1:-60}" target name found=0 try
  [[ "$seconds" =~ ^[0-9]+$ ]] || die "fuzz takes a number of seconds, got '$seconds'" "./bootstrap fuzz 60"
  [ -f tests/fuzz/CMakeLists.txt ] || die "there are no fuzz targets (tests/fuzz/CMakeLists.txt)" "./bootstrap test"
  try="reproduce with the target and the file named in the log"
  step configure-fuzz "./bootstrap deps" cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_COMPILER=/usr/bin/clang-14 -DCMAKE_CXX_COMPILER=/usr/bin/clang++-14 -DKVARTET_FUZZ=ON \
    -DKVARTET_SANITIZE=address,undefined -DKVARTET_TOOLS=OFF -DKVARTET_BENCH=OFF
  step build-fuzz "$BUILD_HINT" ninja -C build/fuzz -j "$JOBS" tests/fuzz/all
  for target in build/fuzz/tests/fuzz/fuzz_*; do
    if [ ! -f "$target" ] || [ ! -x "$target" ]; then continue; fi
    found=1
    name="$(basename "$target")"
    mkdir -p "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
    say "fuzzing $name for $seconds s"
    step "$name" "$try" "$target" -max_total_time="$seconds" -artifact_prefix="build/fuzz/$name-" \
      "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
  done
  [ "$found" = 1 ] || die "tests/fuzz built no program named fuzz_*" "look at tests/fuzz/CMakeLists.txt"
}
