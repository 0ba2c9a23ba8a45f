/* Keys name data; block hashes help routing. Neither reveals tokens.
 *
 * A key is KVT_KEY_BYTES: the SHA-256 chain value at the block's end and the block's token count (u32). The
 * chain runs over grains of 16 tokens, so the same tokens give the same chain values whatever the block size:
 *   root     = SHA-256("kvartet-key-1" 00 | u32 len, namespace | u32 len, salt | model fingerprint)
 *   chain[i] = SHA-256(chain[i-1] or root | 16 tokens as i32 | u32 number of extras |
 *                      each: u32 offset in grain, u64 len, bytes)
 * All integers are little-endian. Test vectors: docs/keys.md. */
#ifndef KVARTET_KEY_H_
#define KVARTET_KEY_H_

#include "base.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KVT_KEY_BYTES 36
#define KVT_NAMESPACE_DIGEST_BYTES 16
#define KVT_GRAIN_TOKENS 16

/* Bytes that belong to a token beside its id: the digest of an image, an adapter switched inside the prompt.
 */
typedef struct kvt_key_extra {
  uint64_t token;      /* index of the token it belongs to, below token_count */
  const uint8_t* data; /* borrowed */
  size_t len;          /* up to 4,096 */
} kvt_key_extra_t;

typedef struct kvt_key_options {
  uint32_t struct_size;
  uint32_t block_tokens; /* tokens of a block, a multiple of 16, up to 65,536; default 16 */
  const uint8_t* ns;     /* namespace (tenant); up to 1,024 bytes; empty is a namespace of its own */
  size_t ns_len;
  const uint8_t* salt; /* cache salt; up to 1,024 bytes */
  size_t salt_len;
  const kvt_key_extra_t* extras; /* ascending by token; a token may have several */
  size_t extra_count;
} kvt_key_options_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_key_options_init(kvt_key_options_t* options, size_t struct_size);

/* Computes the keys of all whole blocks of `tokens`, in order.
 * @param options    NULL for the defaults.
 * @param keys, cap  out: blocks x KVT_KEY_BYTES bytes; (NULL, 0) probes. @param needed out: bytes.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_keys_compute(kvt_model_t model, const kvt_key_options_t* options,
                                      const int32_t* tokens, size_t token_count, uint8_t* keys, size_t cap,
                                      size_t* needed);

/* The digest of namespace and salt that frames carry and peers are checked by: the first 16 bytes of
 * SHA-256("kvartet-ns-1" 00 | u32 len, namespace | u32 len, salt).
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_namespace_digest(const uint8_t* ns, size_t ns_len, const uint8_t* salt,
                                          size_t salt_len, uint8_t digest[KVT_NAMESPACE_DIGEST_BYTES]);

/* Routing hashes as NVIDIA Dynamo and SMG compute them: local = XXH3-64(tokens as u32, seed), seq[0] =
 * local[0], seq[i] = XXH3-64(seq[i-1] | local[i], 1337), little-endian; seed = 1337 [+ XXH3-64(adapter, 0)]
 * [+ XXH3-64(namespace, 1)]. Collisions can be made on purpose: for routing only, never to name data.
 * @param hashes, cap  out: one seq hash a whole block; cap and needed count hashes; (NULL, 0) probes.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: no. Since: 0.1.
 */
KVT_API kvt_status_t kvt_block_hashes(const int32_t* tokens, size_t token_count, uint32_t block_tokens,
                                      const uint8_t* adapter, size_t adapter_len, const uint8_t* ns,
                                      size_t ns_len, uint64_t* hashes, size_t cap, size_t* needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_KEY_H_ */
