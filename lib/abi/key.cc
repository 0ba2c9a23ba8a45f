#include "key/key.h"

#include "base/boundary.h"
#include "base/options.h"
#include "kvartet/key.h"
#include "model/model.h"

namespace {

kvt_key_options_t DefaultOptions() {
  kvt_key_options_t options = {};
  options.struct_size = sizeof options;
  options.block_tokens = KVT_GRAIN_TOKENS;
  return options;
}

kvt::Status CheckArray(absl::string_view name, const void* data, size_t count) {
  if (data != nullptr || count == 0) return kvt::OkStatus();
  return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL but its length is ", count));
}

}  // namespace

extern "C" {

KVT_API void kvt_key_options_init(kvt_key_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(DefaultOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_keys_compute(kvt_model_t model, const kvt_key_options_t* options,
                                      const int32_t* tokens, size_t token_count, uint8_t* keys, size_t cap,
                                      size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    kvt_key_options_t read = DefaultOptions();
    if (options != nullptr) KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_key_options", &read));
    KVT_RETURN_IF_ERROR(CheckArray("tokens", tokens, token_count));
    KVT_ASSIGN_OR_RETURN(auto found, kvt::Lookup<const kvt::Model>(model));
    KVT_ASSIGN_OR_RETURN(const auto computed,
                         kvt::ComputeKeys(found->fingerprint(), read, {tokens, token_count}));
    static_assert(sizeof(kvt::Key) == KVT_KEY_BYTES);
    return kvt::CopyOut(computed.data(), computed.size() * sizeof(kvt::Key), keys, cap, needed);
  });
}

KVT_API kvt_status_t kvt_namespace_digest(const uint8_t* ns, size_t ns_len, const uint8_t* salt,
                                          size_t salt_len, uint8_t digest[KVT_NAMESPACE_DIGEST_BYTES]) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (digest == nullptr) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "digest is NULL");
    KVT_ASSIGN_OR_RETURN(const kvt::NamespaceDigest computed,
                         kvt::DigestNamespace(ns, ns_len, salt, salt_len));
    std::memcpy(digest, computed.data(), computed.size());
    return kvt::OkStatus();
  });
}

KVT_API kvt_status_t kvt_block_hashes(const int32_t* tokens, size_t token_count, uint32_t block_tokens,
                                      const uint8_t* adapter, size_t adapter_len, const uint8_t* ns,
                                      size_t ns_len, uint64_t* hashes, size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> kvt::Status {
    if (block_tokens == 0 || block_tokens > 65536) {
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT,
                        absl::StrCat("block_tokens is ", block_tokens, ", allowed are 1 to 65536"));
    }
    KVT_RETURN_IF_ERROR(CheckArray("tokens", tokens, token_count));
    KVT_RETURN_IF_ERROR(CheckArray("adapter", adapter, adapter_len));
    KVT_RETURN_IF_ERROR(CheckArray("ns", ns, ns_len));
    if (hashes == nullptr && cap != 0)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("hashes is NULL but cap is ", cap));
    if (hashes == nullptr && needed == nullptr)
      return kvt::Error(KVT_ERR_INVALID_ARGUMENT, "hashes and needed are both NULL");
    const size_t count = token_count / block_tokens;
    if (needed != nullptr) *needed = count;
    if (hashes == nullptr) return kvt::OkStatus();
    if (cap < count)
      return kvt::Error(KVT_ERR_BUFFER_TOO_SMALL,
                        absl::StrCat("cap is ", cap, ", needed are ", count, " hashes"));
    const std::vector<uint64_t> computed =
        kvt::BlockHashes({tokens, token_count}, block_tokens, {adapter, adapter_len}, {ns, ns_len});
    std::copy(computed.begin(), computed.end(), hashes);
    return kvt::OkStatus();
  });
}

}  // extern "C"
