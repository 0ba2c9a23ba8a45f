// Key: the name of a block's data, and the digests and hashes beside it (include/kvartet/key.h has the
// definitions).
#ifndef KVARTET_LIB_KEY_KEY_H_
#define KVARTET_LIB_KEY_KEY_H_

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "kvartet/key.h"

namespace kvt {

using NamespaceDigest = std::array<uint8_t, KVT_NAMESPACE_DIGEST_BYTES>;

// Opaque below the cache: equal bytes, same data.
struct Key {
  std::array<uint8_t, KVT_KEY_BYTES> bytes{};

  static Key From(const uint8_t* data) {
    Key key;
    std::memcpy(key.bytes.data(), data, key.bytes.size());
    return key;
  }
  // An all-zero key: data without a name.
  bool IsNull() const { return *this == Key(); }
  friend bool operator==(const Key& a, const Key& b) { return a.bytes == b.bytes; }
  friend auto operator<=>(const Key& a, const Key& b) { return a.bytes <=> b.bytes; }
  // The bytes are the output of SHA-256: any part of them is a hash, but a peer may choose keys, so mix them.
  template <typename H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine_contiguous(std::move(h), key.bytes.data(), key.bytes.size());
  }
  std::string ToString() const { return Hex(Bytes(bytes)); }
};

}  // namespace kvt

#endif  // KVARTET_LIB_KEY_KEY_H_
