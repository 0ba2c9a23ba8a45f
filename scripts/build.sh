# shellcheck shell=bash
# Configure and build the presets. Output goes to build/logs; ninja's last lines appear on failure only.

BUILD_HINT="read the first error above; './bootstrap clean' removes a stale build"

# configure PRESET [CMAKE_ARGS...]
configure() {
  local preset="$1"
  shift
  step "configure-$preset" "./bootstrap deps, then ./bootstrap clean" \
    cmake --preset "$preset" -DCMAKE_C_COMPILER=/usr/bin/gcc -DCMAKE_CXX_COMPILER=/usr/bin/g++ "$@"
}

# compile PRESET [TARGETS...]: says so only when there is something to do.
compile() {
  local preset="$1" pending
  shift
  pending="$(ninja -C "build/$preset" -n "$@" 2>/dev/null | grep -c '^\[' || true)"
  [ "$pending" -eq 0 ] || say "building $preset ($pending steps)"
  step "build-$preset" "$BUILD_HINT" ninja -C "build/$preset" -j "$JOBS" "$@"
}

# The library and the command: what a user of the library needs, without tests.
build_release() {
  configure release
  compile release lib/all tools/all
}
