# shellcheck shell=bash
# Configure and build the presets. Output goes to build/logs; ninja's last lines appear on failure only.

BUILD_HINT="read the first error above; './bootstrap clean' removes a stale build"

# shellcheck disable=SC2034  # used by bootstrap and test.sh
KVARTET_COMMAND=build/release/bin/kvartet

# gcc 12 at -O3 reports these about std::string's own code (gcc bugs 105329 and 105562).
FALSE_ALARMS="-Wno-maybe-uninitialized -Wno-restrict"

# configure PRESET [CMAKE_ARGS...]
configure() {
  local preset="$1" strict=OFF
  shift
  # gcc warns wrongly about what the sanitizers insert, so the plain build is the one that must be free of warnings.
  if [ "$preset" = release ]; then strict=ON; fi
  step "configure-$preset" "./bootstrap deps, then ./bootstrap clean" \
    cmake --preset "$preset" -DCMAKE_C_COMPILER=/usr/bin/gcc -DCMAKE_CXX_COMPILER=/usr/bin/g++ \
    -DCMAKE_CXX_FLAGS="$FALSE_ALARMS" -DCMAKE_COMPILE_WARNING_AS_ERROR="$strict" "$@"
}

# compile PRESET [TARGETS...]: says so only when a source is newer than the last build of the same targets.
compile() {
  local preset="$1" stamp
  shift
  stamp="build/$preset/built-$(printf '%s' "$*" | sha256sum | cut -c1-8)"
  if [ ! -f "$stamp" ] || [ -n "$(find CMakeLists.txt include kernels lib packaging samples tests tools \
    -newer "$stamp" -print -quit)" ]; then
    say "building $preset"
  fi
  step "build-$preset" "$BUILD_HINT" ninja -C "build/$preset" -j "$JOBS" "$@"
  touch "$stamp"
}

# The library and the command: what a user of the library needs, without tests.
build_release() {
  configure release
  compile release lib/all tools/all
}
