// Key: the name of a block's data, and the digests and hashes beside it (include/kvartet/key.h has the
// definitions).
#ifndef KVARTET_LIB_KEY_KEY_H_
#define KVARTET_LIB_KEY_KEY_H_

#include <array>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
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

// `options` has been through ReadStruct. The keys of all whole blocks, in order. KVT_ERR_INVALID_ARGUMENT.
StatusOr<std::vector<Key>> ComputeKeys(const std::array<uint8_t, KVT_FINGERPRINT_BYTES>& model,
                                       const kvt_key_options_t& options, absl::Span<const int32_t> tokens);

StatusOr<NamespaceDigest> DigestNamespace(const uint8_t* ns, size_t ns_len, const uint8_t* salt,
                                          size_t salt_len);

// Sequence hashes of all whole blocks: for routing only. An empty adapter or namespace is none.
std::vector<uint64_t> BlockHashes(absl::Span<const int32_t> tokens, uint32_t block_tokens, Bytes adapter,
                                  Bytes ns);

}  // namespace kvt

#endif  // KVARTET_LIB_KEY_KEY_H_
