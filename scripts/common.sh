# shellcheck shell=bash
# shellcheck disable=SC2034  # variables that the sourcing scripts use
# Shared by bootstrap and the scripts it sources: a clean environment, messages, logged steps.

# Nothing from the caller's shell may change what is built or what a test sees.
unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CC CXX CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH \
  LD_LIBRARY_PATH LD_PRELOAD PKG_CONFIG_PATH PKG_CONFIG_LIBDIR CMAKE_PREFIX_PATH CMAKE_GENERATOR \
  CMAKE_BUILD_TYPE CMAKE_TOOLCHAIN_FILE CMAKE_BUILD_PARALLEL_LEVEL NINJA_STATUS MAKEFLAGS DESTDIR \
  PYTHONPATH PYTHONHOME PYTHONSTARTUP GTEST_FILTER GTEST_SHUFFLE GTEST_REPEAT ASAN_OPTIONS \
  UBSAN_OPTIONS TSAN_OPTIONS LSAN_OPTIONS CTEST_PARALLEL_LEVEL CTEST_OUTPUT_ON_FAILURE OMP_NUM_THREADS \
  CDPATH GREP_OPTIONS
for variable in ${!KVT_@} ${!KVARTET_@} ${!CCACHE_@} ${!OPENBLAS_@}; do
  case "$variable" in CCACHE_DIR | CCACHE_MAXSIZE) ;; *) unset "$variable" ;; esac
done
export LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
export CMAKE_COLOR_DIAGNOSTICS=OFF CLICOLOR=0
ROOT="$PWD"
DEPS="$ROOT/.deps"
LOGS="$ROOT/build/logs"
# Two clones share compiled objects: paths inside the tree are relative for ccache.
export CCACHE_BASEDIR="$ROOT" CCACHE_NOHASHDIR=1

# A compiler process needs up to about 1.5 GiB.
count_jobs() {
  local cores memory_kib jobs
  cores="$(nproc)"
  memory_kib="$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)"
  jobs=$((memory_kib / 1500000))
  [ "$jobs" -ge 1 ] || jobs=1
  [ "$jobs" -le "$cores" ] || jobs="$cores"
  echo "$jobs"
}
JOBS="$(count_jobs)"

say() { printf 'kvartet: %s\n' "$*"; }

# die WHAT [TRY]: what failed and what to try.
die() {
  printf 'kvartet: error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf 'kvartet: try: %s\n' "$2" >&2
  exit 1
}

# step NAME TRY COMMAND...: runs the command with its output in build/logs/NAME.log; shows its end on failure.
step() {
  local name="$1" try="$2" log status=0
  shift 2
  mkdir -p "$LOGS"
  log="$LOGS/$name.log"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -ne 0 ]; then
    {
      printf 'kvartet: error: step "%s" failed with status %d\n' "$name" "$status"
      printf 'kvartet: command: %s\n' "$*"
      printf 'kvartet: the end of %s:\n' "$log"
      grep -nE '(error|FAILED|fatal|undefined reference)' "$log" | head -n 15 || true
      echo '  ...'
      tail -n 30 "$log"
      printf 'kvartet: try: %s\n' "$try"
    } >&2
    return 1
  fi
}

# has_file_hash FILE SHA256: whether the file is there and is that one.
has_file_hash() {
  [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ]
}
