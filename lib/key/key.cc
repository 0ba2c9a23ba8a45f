#include "key/key.h"

#include "base/sha256.h"

namespace kvt {
namespace {

constexpr size_t kMaxNameBytes = 1024, kMaxExtraBytes = 4096;
constexpr uint32_t kMaxBlockTokens = 65536;
constexpr absl::string_view kKeyTag("kvartet-key-1", 14),
    kNamespaceTag("kvartet-ns-1", 13);  // with their NULs

Status Bad(absl::string_view field, const absl::AlphaNum& value, absl::string_view wanted) {
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(field, " is ", value, ", ", wanted));
}

Status CheckBytes(absl::string_view field, const uint8_t* data, size_t size, size_t most) {
  if (size > most) return Bad(absl::StrCat(field, "_len"), size, absl::StrCat("the most is ", most));
  if (data == nullptr && size != 0) return Bad(field, "NULL", absl::StrCat("but its length is ", size));
  return OkStatus();
}

Status CheckExtras(const kvt_key_options_t& options, size_t token_count) {
  if (options.extras == nullptr && options.extra_count != 0)
    return Bad("kvt_key_options.extras", "NULL", absl::StrCat("but extra_count is ", options.extra_count));
  for (size_t i = 0; i < options.extra_count; ++i) {
    const kvt_key_extra_t& extra = options.extras[i];
    const std::string field = absl::StrCat("kvt_key_options.extras[", i, "]");
    if (extra.token >= token_count)
      return Bad(absl::StrCat(field, ".token"), extra.token,
                 absl::StrCat("there are ", token_count, " tokens"));
    if (i != 0 && extra.token < options.extras[i - 1].token)
      return Bad(absl::StrCat(field, ".token"), extra.token,
                 absl::StrCat("after ", options.extras[i - 1].token, "; extras ascend by token"));
    if (extra.len > kMaxExtraBytes)
      return Bad(absl::StrCat(field, ".len"), extra.len, absl::StrCat("the most is ", kMaxExtraBytes));
    if (extra.data == nullptr && extra.len != 0)
      return Bad(absl::StrCat(field, ".data"), "NULL", absl::StrCat("but len is ", extra.len));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<Key>> ComputeKeys(const std::array<uint8_t, KVT_FINGERPRINT_BYTES>& model,
                                       const kvt_key_options_t& options, absl::Span<const int32_t> tokens) {
  const uint32_t block = options.block_tokens;
  if (block == 0 || block % KVT_GRAIN_TOKENS != 0 || block > kMaxBlockTokens)
    return Bad("kvt_key_options.block_tokens", block,
               absl::StrCat("allowed are multiples of ", KVT_GRAIN_TOKENS, " up to ", kMaxBlockTokens));
  KVT_RETURN_IF_ERROR(CheckBytes("kvt_key_options.ns", options.ns, options.ns_len, kMaxNameBytes));
  KVT_RETURN_IF_ERROR(CheckBytes("kvt_key_options.salt", options.salt, options.salt_len, kMaxNameBytes));
  KVT_RETURN_IF_ERROR(CheckExtras(options, tokens.size()));

  Sha256 sha;
  sha.Update(AsBytes(kKeyTag));
  sha.UpdateSized(Bytes(options.ns, options.ns_len));
  sha.UpdateSized(Bytes(options.salt, options.salt_len));
  sha.Update(Bytes(model));
  KVT_ASSIGN_OR_RETURN(Sha256Digest chain, sha.Finish());

  std::vector<Key> keys;
  keys.reserve(tokens.size() / block);
  const kvt_key_extra_t* extra = options.extras;
  const kvt_key_extra_t* const extras_end = extra + options.extra_count;
  for (size_t end = KVT_GRAIN_TOKENS; end <= tokens.size() / block * block; end += KVT_GRAIN_TOKENS) {
    const size_t begin = end - KVT_GRAIN_TOKENS;
    const kvt_key_extra_t* const first = extra;
    while (extra != extras_end && extra->token < end) ++extra;
    sha.Update(Bytes(chain));
    sha.Update(
        Bytes(reinterpret_cast<const uint8_t*>(tokens.data() + begin), KVT_GRAIN_TOKENS * sizeof(int32_t)));
    sha.UpdateU32(static_cast<uint32_t>(extra - first));
    for (const kvt_key_extra_t* e = first; e != extra; ++e) {
      sha.UpdateU32(static_cast<uint32_t>(e->token - begin));
      sha.UpdateU64(e->len);
      sha.Update(Bytes(e->data, e->len));
    }
    KVT_ASSIGN_OR_RETURN(chain, sha.Finish());
    if (end % block != 0) continue;
    Key& key = keys.emplace_back();
    std::memcpy(key.bytes.data(), chain.data(), chain.size());
    StoreLe<uint32_t>(key.bytes.data() + chain.size(), block);
  }
  return keys;
}

StatusOr<NamespaceDigest> DigestNamespace(const uint8_t* ns, size_t ns_len, const uint8_t* salt,
                                          size_t salt_len) {
  KVT_RETURN_IF_ERROR(CheckBytes("ns", ns, ns_len, kMaxNameBytes));
  KVT_RETURN_IF_ERROR(CheckBytes("salt", salt, salt_len, kMaxNameBytes));
  Sha256 sha;
  sha.Update(AsBytes(kNamespaceTag));
  sha.UpdateSized(Bytes(ns, ns_len));
  sha.UpdateSized(Bytes(salt, salt_len));
  KVT_ASSIGN_OR_RETURN(const Sha256Digest whole, sha.Finish());
  NamespaceDigest digest;
  std::memcpy(digest.data(), whole.data(), digest.size());
  return digest;
}

}  // namespace kvt
