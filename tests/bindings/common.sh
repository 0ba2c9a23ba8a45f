# shellcheck shell=bash
# How each language is built over the installed tree $prefix, into $build. Sourced with $root and $prefix set.
# No network: only the standard libraries are used.
: "${root:?}" "${prefix:?}"
build="${KVT_BINDINGS_BUILD:-$root/build/bindings}"
mkdir -p "$build"
for folder in /usr/local/go/bin "$HOME/.cargo/bin"; do
  [ -d "$folder" ] && PATH="$PATH:$folder"
done

bindings_env_go() {
  # Go compiles again when a flag changes, but does not look at files that its package includes from elsewhere.
  local sources
  sources="$(cat "$root"/bindings/swig/*.[ch] "$prefix"/include/kvartet/*.h | sha256sum | cut -c1-16)"
  export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" CGO_CFLAGS="-O2 -I$prefix/include -DKVT_SOURCES=0x$sources"
  export CGO_LDFLAGS="-L$prefix/lib -Wl,-rpath,$prefix/lib" GOPROXY=off GOTOOLCHAIN=local GOWORK=off
}

bindings_env_rust() {
  export KVARTET_PREFIX="$prefix" CARGO_TARGET_DIR="$build/rust" CARGO_NET_OFFLINE=true
  export RUSTFLAGS="-D warnings -C link-arg=-Wl,-rpath,$prefix/lib"
}

# The library for JNI and the classes; compiled again when a source is newer.
build_java() {
  local home library="$build/java/libkvartet_jni.so"
  home="$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")"
  mkdir -p "$build/java/classes" "$build/java/test"
  "${CC:-cc}" -std=gnu11 -shared -fPIC -O2 -Wall -Wno-unused-function -fno-strict-aliasing \
    -I"$home/include" -I"$home/include/linux" -I"$root/bindings/swig" -I"$prefix/include" \
    "$root/bindings/java/src/io/kvartet/internal/generated/flat_wrap.c" "$root/bindings/swig/kvartet_flat.c" -o "$library" \
    -L"$prefix/lib" -lkvartet -Wl,-rpath,"$prefix/lib" -lpthread &&
    javac -Xlint:all -Werror -d "$build/java/classes" "$root"/bindings/java/src/io/kvartet/*.java \
      "$root"/bindings/java/src/io/kvartet/internal/generated/*.java
}
