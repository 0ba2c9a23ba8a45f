// Keys, digests and hashes through the C ABI, from any tokens, extras, names and options. Keys and hashes of
// a prefix are a prefix of the keys and hashes.
#include <fuzzer/FuzzedDataProvider.h>

#include "fuzz/small.h"
#include "kvartet/key.h"

namespace {

using kvt::fuzz::Require;

kvt_model_t MakeModel() {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.layout = KVT_LAYOUT_KV;
  options.model_id = reinterpret_cast<const uint8_t*>("fuzz");
  options.model_id_len = 4;
  options.layers = options.kv_heads = 1;
  options.k_dim = options.v_dim = 8;
  options.element = KVT_ELEMENT_F16;
  kvt_model_t model = 0;
  Require(kvt_model_create(&options, &model) == KVT_OK);
  return model;
}

// Empty when the call fails; then nothing is written.
std::vector<uint8_t> Keys(kvt_model_t model, const kvt_key_options_t* options,
                          const std::vector<int32_t>& tokens) {
  size_t needed = 0;
  const kvt_status_t probed =
      kvt_keys_compute(model, options, tokens.data(), tokens.size(), nullptr, 0, &needed);
  std::vector<uint8_t> keys(needed + 1, 0xa5);
  const kvt_status_t status =
      kvt_keys_compute(model, options, tokens.data(), tokens.size(), keys.data(), needed, nullptr);
  Require((probed == KVT_OK) == (status == KVT_OK) && keys.back() == 0xa5);
  Require(status == KVT_OK || needed == 0);
  if (needed > 1) {
    Require(kvt_keys_compute(model, options, tokens.data(), tokens.size(), keys.data(), needed - 1,
                             nullptr) == KVT_ERR_BUFFER_TOO_SMALL);
  }
  keys.pop_back();
  return keys;
}

std::vector<uint64_t> Hashes(const std::vector<int32_t>& tokens, uint32_t block, const std::string& adapter,
                             const std::string& ns) {
  const auto* adapter_data = kvt::AsBytes(adapter).data();
  const auto* ns_data = kvt::AsBytes(ns).data();
  size_t needed = 0;
  if (kvt_block_hashes(tokens.data(), tokens.size(), block, adapter_data, adapter.size(), ns_data, ns.size(),
                       nullptr, 0, &needed) != KVT_OK)
    return {};
  std::vector<uint64_t> hashes(needed);
  Require(hashes.empty() ||
          kvt_block_hashes(tokens.data(), tokens.size(), block, adapter_data, adapter.size(), ns_data,
                           ns.size(), hashes.data(), hashes.size(), nullptr) == KVT_OK);
  return hashes;
}

template <typename T>
void RequirePrefix(const std::vector<T>& part, const std::vector<T>& whole) {
  Require(part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const kvt_model_t model = MakeModel();
  FuzzedDataProvider input(data, size);
  kvt_key_options_t options;
  kvt_key_options_init(&options, sizeof options);
  options.block_tokens =
      input.ConsumeBool() ? 16u * input.ConsumeIntegral<uint8_t>() : input.ConsumeIntegral<uint32_t>();
  const std::string ns = input.ConsumeRandomLengthString(1100), salt = input.ConsumeRandomLengthString(1100);
  options.ns = kvt::AsBytes(ns).data();
  options.ns_len = ns.size();
  options.salt = kvt::AsBytes(salt).data();
  options.salt_len = salt.size();
  std::vector<std::string> contents;
  std::vector<kvt_key_extra_t> extras(input.ConsumeIntegralInRange<size_t>(0, 8));
  for (kvt_key_extra_t& extra : extras) {
    extra.token = input.ConsumeBool() ? input.ConsumeIntegral<uint8_t>() : input.ConsumeIntegral<uint64_t>();
    contents.push_back(input.ConsumeRandomLengthString(64));
  }
  for (size_t i = 0; i < extras.size(); ++i) {
    extras[i].data = kvt::AsBytes(contents[i]).data();
    extras[i].len = contents[i].size();
  }
  options.extras = extras.data();
  options.extra_count = extras.size();
  // A caller of another version: a shorter struct, or a longer one with anything in its tail.
  // The library reads struct_size first, so that much is always there.
  std::vector<uint8_t> passed(input.ConsumeBool()
                                  ? sizeof options
                                  : input.ConsumeIntegralInRange<size_t>(sizeof options.struct_size, 255));
  options.struct_size = static_cast<uint32_t>(passed.size());
  std::memcpy(passed.data(), &options, std::min(passed.size(), sizeof options));
  if (passed.size() > sizeof options) passed.back() = input.ConsumeIntegral<uint8_t>();
  const uint32_t hash_block = input.ConsumeIntegralInRange<uint32_t>(0, 70000);
  const size_t shorter = input.ConsumeIntegral<uint8_t>();
  std::vector<int32_t> tokens(input.remaining_bytes());
  for (int32_t& token : tokens) token = input.ConsumeIntegral<uint8_t>() * 1000003;

  const auto* read = reinterpret_cast<const kvt_key_options_t*>(passed.data());
  const std::vector<uint8_t> keys = Keys(model, read, tokens);
  const std::vector<uint64_t> hashes = Hashes(tokens, hash_block, ns, salt);
  uint8_t digest[KVT_NAMESPACE_DIGEST_BYTES];
  (void)kvt_namespace_digest(options.ns, ns.size(), options.salt, salt.size(), digest);
  tokens.resize(std::min(tokens.size(), shorter));
  RequirePrefix(Hashes(tokens, hash_block, ns, salt), hashes);
  // Extras of tokens that are left out would be refused.
  if (passed.size() == sizeof options && (extras.empty() || extras.back().token < tokens.size()))
    RequirePrefix(Keys(model, read, tokens), keys);
  return 0;
}
