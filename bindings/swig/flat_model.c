/* Model, keys, and the codec with its views and frames. */
#include "flat_internal.h"

static const flat_field_t kModelFields[] = {
    FLAT_FIELD(kvt_model_options_t, layout, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, layers, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, kv_heads, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, k_dim, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, v_dim, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, element, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, rope_style, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, rope_offset, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, rope_dims, FLAT_U32),
    FLAT_FIELD(kvt_model_options_t, rope_base, FLAT_F64),
    FLAT_FIELD(kvt_model_options_t, rope_magnitude, FLAT_F64),
};

int64_t kvtf_model_create(const uint8_t* options, size_t options_len, const uint8_t* id, size_t id_len,
                          const uint8_t* adapter, size_t adapter_len, const uint8_t* factors,
                          size_t factors_len, uint8_t* err, size_t err_cap) {
  kvt_model_options_t values;
  kvt_model_options_init(&values, sizeof values);
  const int64_t read = FlatReadRecord("model", kModelFields, FLAT_COUNT(kModelFields), options, options_len,
                                      &values, FLAT_ERROR);
  if (read < 0) return read;
  const int64_t factor_count = FlatArrayCount("factors", factors_len, sizeof(double), FLAT_ERROR);
  if (factor_count < 0) return factor_count;
  double* const aligned = FlatCopy(factors, factors_len);
  if (aligned == NULL) return FlatNoMemory(FLAT_ERROR, factors_len);
  values.model_id = id;
  values.model_id_len = id_len;
  values.adapter = adapter_len > 0 ? adapter : NULL;
  values.adapter_len = adapter_len;
  values.rope_factors = factor_count > 0 ? aligned : NULL;
  values.rope_factor_count = (size_t)factor_count;
  kvt_model_t model = 0;
  const kvt_status_t status = kvt_model_create(&values, &model);
  const int64_t result = FlatResult(status, (int64_t)model, FLAT_ERROR);
  free(aligned);
  return result;
}

void kvtf_model_destroy(int64_t model) { kvt_model_destroy((uint64_t)model); }

int64_t kvtf_model_fingerprint(int64_t model, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  uint8_t fingerprint[KVT_FINGERPRINT_BYTES];
  const kvt_status_t status = kvt_model_fingerprint((uint64_t)model, fingerprint);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatCopyOut(fingerprint, sizeof fingerprint, buf, cap);
}

int64_t kvtf_model_canonical(int64_t model, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  size_t needed = 0;
  const kvt_status_t status = kvt_model_canonical((uint64_t)model, buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}

int64_t kvtf_model_compare(int64_t left, int64_t right, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_model_compare((uint64_t)left, (uint64_t)right), 0, FLAT_ERROR);
}

/* Unpacks extras; *extras is freed by the caller. */
static int64_t FlatExtras(const uint8_t* data, size_t len, kvt_key_extra_t** extras, flat_error_t error) {
  size_t count = 0;
  *extras = NULL;
  for (size_t at = 0; at < len; ++count) {
    uint64_t words[2];
    if (len - at < sizeof words) {
      return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "extra %zu ends inside of its length", count);
    }
    memcpy(words, data + at, sizeof words);
    at += sizeof words;
    if (words[1] > len - at) {
      return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "extra %zu has %llu bytes; %zu are there", count,
                        (unsigned long long)words[1], len - at);
    }
    at += (size_t)words[1];
  }
  if (count == 0) return 0;
  *extras = calloc(count, sizeof **extras);
  if (*extras == NULL) return FlatNoMemory(error, count * sizeof **extras);
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t words[2];
    memcpy(words, data + at, sizeof words);
    at += sizeof words;
    (*extras)[i].token = words[0];
    (*extras)[i].data = data + at;
    (*extras)[i].len = (size_t)words[1];
    at += (size_t)words[1];
  }
  return (int64_t)count;
}

int64_t kvtf_keys_compute(int64_t model, int64_t block_tokens, const uint8_t* ns, size_t ns_len,
                          const uint8_t* salt, size_t salt_len, const uint8_t* tokens, size_t tokens_len,
                          const uint8_t* extras, size_t extras_len, uint8_t* buf, size_t cap, uint8_t* err,
                          size_t err_cap) {
  static const flat_field_t kBlock = FLAT_FIELD(kvt_key_options_t, block_tokens, FLAT_U32);
  kvt_key_options_t options;
  kvt_key_options_init(&options, sizeof options);
  const int64_t block = FlatReadField(&kBlock, block_tokens, &options, FLAT_ERROR);
  if (block < 0) return block;
  const int64_t token_count = FlatArrayCount("tokens", tokens_len, sizeof(int32_t), FLAT_ERROR);
  if (token_count < 0) return token_count;
  kvt_key_extra_t* unpacked = NULL;
  const int64_t extra_count = FlatExtras(extras, extras_len, &unpacked, FLAT_ERROR);
  if (extra_count < 0) return extra_count;
  int32_t* const aligned = FlatCopy(tokens, tokens_len);
  int64_t result = FlatNoMemory(FLAT_ERROR, tokens_len);
  if (aligned != NULL) {
    options.ns = ns;
    options.ns_len = ns_len;
    options.salt = salt;
    options.salt_len = salt_len;
    options.extras = unpacked;
    options.extra_count = (size_t)extra_count;
    size_t needed = 0;
    const kvt_status_t status =
        kvt_keys_compute((uint64_t)model, &options, aligned, (size_t)token_count, buf, cap, &needed);
    result = FlatNeeded(status, needed, FLAT_ERROR);
  }
  free(aligned);
  free(unpacked);
  return result;
}

int64_t kvtf_namespace_digest(const uint8_t* ns, size_t ns_len, const uint8_t* salt, size_t salt_len,
                              uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  uint8_t digest[KVT_NAMESPACE_DIGEST_BYTES];
  const kvt_status_t status = kvt_namespace_digest(ns, ns_len, salt, salt_len, digest);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatCopyOut(digest, sizeof digest, buf, cap);
}

int64_t kvtf_block_hashes(int64_t block_tokens, const uint8_t* tokens, size_t tokens_len,
                          const uint8_t* adapter, size_t adapter_len, const uint8_t* ns, size_t ns_len,
                          uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  static const flat_field_t kBlock = {"block_tokens", 0, FLAT_U32};
  uint32_t block = 0;
  const int64_t read = FlatReadField(&kBlock, block_tokens, &block, FLAT_ERROR);
  if (read < 0) return read;
  const int64_t token_count = FlatArrayCount("tokens", tokens_len, sizeof(int32_t), FLAT_ERROR);
  if (token_count < 0) return token_count;
  int32_t* const aligned = FlatCopy(tokens, tokens_len);
  uint64_t* const hashes = malloc(cap / sizeof(uint64_t) * sizeof(uint64_t) + 1);
  int64_t result = FlatNoMemory(FLAT_ERROR, tokens_len + cap);
  if (aligned != NULL && hashes != NULL) {
    const size_t room = cap / sizeof(uint64_t);
    size_t needed = 0;
    const kvt_status_t status = kvt_block_hashes(aligned, (size_t)token_count, block, adapter, adapter_len,
                                                 ns, ns_len, room > 0 ? hashes : NULL, room, &needed);
    if (status == KVT_OK && needed > 0 && needed <= room) memcpy(buf, hashes, needed * sizeof(uint64_t));
    result = FlatNeeded(status, needed * sizeof(uint64_t), FLAT_ERROR);
  }
  free(hashes);
  free(aligned);
  return result;
}
