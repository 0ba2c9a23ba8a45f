/* The flat facade: the C ABI in a shape that every generator of bindings understands. SWIG reads this header
 * and no other. It is private to the bindings; it makes no promise to anyone else.
 *
 * Results. Every fallible function returns int64_t: a value >= 0 (a handle, a count, a length, 0 for "done"),
 * or a negative kvt_status_t. The text of a failure is written by the same call into (err, err_cap), ending
 * with NUL, since a later call may run on another thread; (NULL, 0) drops it.
 *
 * Bytes in: pointer and length, borrowed for the call. Bytes out: pointer and capacity; the result is the
 * length of the whole output, and when it is greater than the capacity nothing was written. (NULL, 0) probes.
 *
 * Structures cross as records: consecutive 64-bit little-endian words in the order of the KVTF_* enum that
 * names them, doubles and floats as the bits of a double. A record that ends early leaves the rest at the
 * library's defaults; one that is too long is refused. kvtf_defaults() writes a record of defaults, so no
 * language repeats them. Arrays of integers cross as little-endian bytes.
 *
 * A view is four arguments: a record, the offsets of its bases in `memory` (64-bit words), its block table
 * (32-bit, empty: contiguous) and the memory. Every element that the view can address must be inside of it.
 *
 * Operations. kvtf_*_submit_* copy what they take or hold a memory object, so nothing of the host's heap is
 * borrowed after a call. An operation is ended by kvtf_operation_release. Threads: any, unless kvartet.h says
 * otherwise of the function below. */
#ifndef KVARTET_BINDINGS_FLAT_H_
#define KVARTET_BINDINGS_FLAT_H_

#include <stddef.h>
#include <stdint.h>

#include "flat_constants.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Base. kvtf_header_abi_version: the ABI that this facade was compiled against. */
int64_t kvtf_abi_version(void);
int64_t kvtf_header_abi_version(void);
int64_t kvtf_version(uint8_t* buf, size_t cap);
int64_t kvtf_status_name(int64_t status, uint8_t* buf, size_t cap);
int64_t kvtf_defaults(int64_t record, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);

/* Waits until a descriptor is readable. @return 1, or 0 at the deadline. */
int64_t kvtf_event_wait(int64_t fd, int64_t timeout_ms, uint8_t* err, size_t err_cap);

/* Memory that operations may hold. Destroying one that an operation holds is KVTF_BUSY. */
int64_t kvtf_memory_create(int64_t bytes, uint8_t* err, size_t err_cap);
int64_t kvtf_memory_destroy(int64_t memory, uint8_t* err, size_t err_cap);
int64_t kvtf_memory_write(int64_t memory, int64_t offset, const uint8_t* data, size_t len, uint8_t* err,
                          size_t err_cap);
int64_t kvtf_memory_read(int64_t memory, int64_t offset, uint8_t* buf, size_t cap, uint8_t* err,
                         size_t err_cap);

/* Runtime. */
int64_t kvtf_runtime_create(const uint8_t* options, size_t options_len, uint8_t* err, size_t err_cap);
int64_t kvtf_runtime_close(int64_t runtime, int64_t timeout_ms, uint8_t* err, size_t err_cap);
void kvtf_runtime_destroy(int64_t runtime);
int64_t kvtf_runtime_memory_used(int64_t runtime, uint8_t* err, size_t err_cap);

/* Model. `factors` are doubles. */
int64_t kvtf_model_create(const uint8_t* options, size_t options_len, const uint8_t* id, size_t id_len,
                          const uint8_t* adapter, size_t adapter_len, const uint8_t* factors,
                          size_t factors_len, uint8_t* err, size_t err_cap);
void kvtf_model_destroy(int64_t model);
int64_t kvtf_model_fingerprint(int64_t model, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_model_canonical(int64_t model, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_model_compare(int64_t left, int64_t right, uint8_t* err, size_t err_cap);
int64_t kvtf_model_shard(int64_t model, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_model_rope(int64_t model, const uint8_t* view, size_t view_len, const uint8_t* bases,
                        size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                        size_t memory_cap, int64_t token_begin, int64_t token_count, int64_t undo,
                        uint8_t* err, size_t err_cap);

/* Keys. `extras` is a run of: u64 token, u64 length, bytes. */
int64_t kvtf_keys_compute(int64_t model, int64_t block_tokens, const uint8_t* ns, size_t ns_len,
                          const uint8_t* salt, size_t salt_len, const uint8_t* tokens, size_t tokens_len,
                          const uint8_t* extras, size_t extras_len, uint8_t* buf, size_t cap, uint8_t* err,
                          size_t err_cap);
int64_t kvtf_namespace_digest(const uint8_t* ns, size_t ns_len, const uint8_t* salt, size_t salt_len,
                              uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_block_hashes(int64_t block_tokens, const uint8_t* tokens, size_t tokens_len,
                          const uint8_t* adapter, size_t adapter_len, const uint8_t* ns, size_t ns_len,
                          uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);

/* Codec and frames. `key` and `digest` are whole or empty (unnamed, zero). `report`: a record, or empty. */
int64_t kvtf_codec_create(int64_t model, const uint8_t* name, size_t name_len, const uint8_t* options,
                          size_t options_len, const uint8_t* profile, size_t profile_len, uint8_t* err,
                          size_t err_cap);
void kvtf_codec_destroy(int64_t codec);
int64_t kvtf_codec_bound(int64_t codec, const uint8_t* view, size_t view_len, const uint8_t* bases,
                         size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                         size_t memory_cap, const uint8_t* spec, size_t spec_len, uint8_t* err,
                         size_t err_cap);
int64_t kvtf_codec_encode(int64_t codec, const uint8_t* view, size_t view_len, const uint8_t* bases,
                          size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                          size_t memory_cap, const uint8_t* spec, size_t spec_len, const uint8_t* key,
                          size_t key_len, const uint8_t* digest, size_t digest_len, uint8_t* buf, size_t cap,
                          uint8_t* report, size_t report_cap, uint8_t* err, size_t err_cap);
int64_t kvtf_codec_decode(int64_t codec, const uint8_t* frame, size_t frame_len, const uint8_t* view,
                          size_t view_len, const uint8_t* bases, size_t bases_len, const uint8_t* table,
                          size_t table_len, uint8_t* memory, size_t memory_cap, const uint8_t* spec,
                          size_t spec_len, const uint8_t* key, size_t key_len, const uint8_t* digest,
                          size_t digest_len, uint8_t* report, size_t report_cap, uint8_t* err,
                          size_t err_cap);
int64_t kvtf_frame_verify(const uint8_t* frame, size_t frame_len, uint8_t* err, size_t err_cap);
int64_t kvtf_frame_describe(const uint8_t* frame, size_t frame_len, uint8_t* buf, size_t cap, uint8_t* err,
                            size_t err_cap);

/* Calibrations and profiles, which may still change in any release. finish may compute for seconds. */
int64_t kvtf_calibration_create(int64_t model, const uint8_t* options, size_t options_len, uint8_t* err,
                                size_t err_cap);
int64_t kvtf_calibration_restore(int64_t model, const uint8_t* saved, size_t saved_len, uint8_t* err,
                                 size_t err_cap);
void kvtf_calibration_destroy(int64_t calibration);
int64_t kvtf_calibration_add(int64_t calibration, const uint8_t* view, size_t view_len, const uint8_t* bases,
                             size_t bases_len, const uint8_t* table, size_t table_len, uint8_t* memory,
                             size_t memory_cap, int64_t token_begin, int64_t token_count, uint8_t* err,
                             size_t err_cap);
int64_t kvtf_calibration_progress(int64_t calibration, uint8_t* buf, size_t cap, uint8_t* err,
                                  size_t err_cap);
int64_t kvtf_calibration_save(int64_t calibration, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_calibration_finish(int64_t calibration, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_profile_fingerprint(const uint8_t* profile, size_t profile_len, uint8_t* buf, size_t cap,
                                 uint8_t* err, size_t err_cap);
int64_t kvtf_profile_describe(const uint8_t* profile, size_t profile_len, uint8_t* buf, size_t cap,
                              uint8_t* err, size_t err_cap);
int64_t kvtf_profile_key(const uint8_t* fingerprint, size_t fingerprint_len, uint8_t* buf, size_t cap,
                         uint8_t* err, size_t err_cap);
int64_t kvtf_profile_wrap(const uint8_t* profile, size_t profile_len, const uint8_t* digest,
                          size_t digest_len, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_profile_unwrap(const uint8_t* frame, size_t frame_len, uint8_t* buf, size_t cap, uint8_t* err,
                            size_t err_cap);

/* Cache. put, store and load wait for the end of their operation inside the call; `results` takes one 32-bit
 * status an item and must hold all. They return the items that are complete, or the first failure. put_one
 * and get are of one frame and run in the calling thread, without an operation and so without a timeout. A
 * put into `file:` waits for the disk. */
int64_t kvtf_cache_open(int64_t runtime, const uint8_t* url, size_t url_len, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_close(int64_t cache, int64_t timeout_ms, uint8_t* err, size_t err_cap);
void kvtf_cache_destroy(int64_t cache);
int64_t kvtf_cache_put(int64_t cache, const uint8_t* keys, size_t keys_len, const uint8_t* frames,
                       size_t frames_len, const uint8_t* lengths, size_t lengths_len, uint8_t* results,
                       size_t results_cap, int64_t timeout_ms, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_put_one(int64_t cache, const uint8_t* key, size_t key_len, const uint8_t* frame,
                           size_t frame_len, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_get(int64_t cache, const uint8_t* key, size_t key_len, uint8_t* buf, size_t cap,
                       uint8_t* err, size_t err_cap);
int64_t kvtf_cache_match(int64_t cache, const uint8_t* keys, size_t keys_len, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_remove(int64_t cache, const uint8_t* keys, size_t keys_len, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_stats(int64_t cache, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_store(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                         const uint8_t* bases, size_t bases_len, const uint8_t* table, size_t table_len,
                         uint8_t* memory, size_t memory_cap, const uint8_t* spec, size_t spec_len,
                         const uint8_t* digest, size_t digest_len, int64_t block_tokens, const uint8_t* keys,
                         size_t keys_len, uint8_t* results, size_t results_cap, int64_t timeout_ms,
                         uint8_t* err, size_t err_cap);
int64_t kvtf_cache_load(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                        const uint8_t* bases, size_t bases_len, const uint8_t* table, size_t table_len,
                        uint8_t* memory, size_t memory_cap, const uint8_t* spec, size_t spec_len,
                        const uint8_t* digest, size_t digest_len, int64_t block_tokens, const uint8_t* keys,
                        size_t keys_len, uint8_t* results, size_t results_cap, int64_t timeout_ms,
                        uint8_t* err, size_t err_cap);
int64_t kvtf_cache_event_fd(int64_t cache, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_poll(int64_t cache, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);

/* The same as operations: they return one. `held` is a memory object. */
int64_t kvtf_cache_submit_put(int64_t cache, const uint8_t* keys, size_t keys_len, const uint8_t* frames,
                              size_t frames_len, const uint8_t* lengths, size_t lengths_len,
                              int64_t timeout_ms, uint8_t* err, size_t err_cap);
int64_t kvtf_cache_submit_store(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                                const uint8_t* bases, size_t bases_len, const uint8_t* table,
                                size_t table_len, int64_t held, const uint8_t* spec, size_t spec_len,
                                const uint8_t* digest, size_t digest_len, int64_t block_tokens,
                                const uint8_t* keys, size_t keys_len, int64_t timeout_ms, uint8_t* err,
                                size_t err_cap);
int64_t kvtf_cache_submit_load(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                               const uint8_t* bases, size_t bases_len, const uint8_t* table, size_t table_len,
                               int64_t held, const uint8_t* spec, size_t spec_len, const uint8_t* digest,
                               size_t digest_len, int64_t block_tokens, const uint8_t* keys, size_t keys_len,
                               int64_t timeout_ms, uint8_t* err, size_t err_cap);

/* Operations. wait returns 0 or the operation's status; results are one 32-bit status an item; frame copies
 * what a pull brought, of a stream also before its end: part i once a completion has said that more than i
 * are in place; release cancels what has not ended. */
int64_t kvtf_operation_wait(int64_t operation, int64_t timeout_ms, uint8_t* completion, size_t completion_cap,
                            uint8_t* err, size_t err_cap);
int64_t kvtf_operation_cancel(int64_t operation, uint8_t* err, size_t err_cap);
int64_t kvtf_operation_results(int64_t operation, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_operation_frame(int64_t operation, int64_t item, uint8_t* buf, size_t cap, uint8_t* err,
                             size_t err_cap);
void kvtf_operation_release(int64_t operation);

/* Nodes and peers. pull writes frame i at i x stride of `frames` and its length as word i of `lengths`. */
int64_t kvtf_node_open(int64_t runtime, int64_t model, const uint8_t* options, size_t options_len,
                       const uint8_t* url, size_t url_len, const uint8_t* digest, size_t digest_len,
                       uint8_t* err, size_t err_cap);
int64_t kvtf_node_url(int64_t node, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_node_serve(int64_t node, int64_t cache, uint8_t* err, size_t err_cap);
int64_t kvtf_node_close(int64_t node, int64_t timeout_ms, uint8_t* err, size_t err_cap);
void kvtf_node_destroy(int64_t node);
int64_t kvtf_node_stats(int64_t node, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_node_event_fd(int64_t node, uint8_t* err, size_t err_cap);
int64_t kvtf_node_poll(int64_t node, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_node_connect(int64_t node, const uint8_t* url, size_t url_len, int64_t timeout_ms, uint8_t* err,
                          size_t err_cap);
void kvtf_peer_destroy(int64_t peer);
int64_t kvtf_peer_pull(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len, uint8_t* frames,
                       size_t frames_cap, int64_t stride, uint8_t* lengths, size_t lengths_cap,
                       uint8_t* results, size_t results_cap, int64_t timeout_ms, uint8_t* err,
                       size_t err_cap);
int64_t kvtf_peer_push(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len,
                       const uint8_t* frames, size_t frames_len, const uint8_t* lengths, size_t lengths_len,
                       uint8_t* results, size_t results_cap, int64_t timeout_ms, uint8_t* err,
                       size_t err_cap);
int64_t kvtf_peer_submit_pull(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len,
                              int64_t stride, int64_t timeout_ms, uint8_t* err, size_t err_cap);
int64_t kvtf_peer_submit_push(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len,
                              const uint8_t* frames, size_t frames_len, const uint8_t* lengths,
                              size_t lengths_len, int64_t timeout_ms, uint8_t* err, size_t err_cap);

/* Streams. A pull takes up to `parts` frames, each at a multiple of 64 in room for `bytes`. */
int64_t kvtf_stream_open(int64_t node, const uint8_t* key, size_t key_len, uint8_t* err, size_t err_cap);
int64_t kvtf_stream_append(int64_t stream, const uint8_t* frame, size_t frame_len, uint8_t* err,
                           size_t err_cap);
int64_t kvtf_stream_finish(int64_t stream, int64_t ok, uint8_t* err, size_t err_cap);
void kvtf_stream_destroy(int64_t stream);
int64_t kvtf_peer_submit_pull_stream(int64_t node, int64_t peer, const uint8_t* key, size_t key_len,
                                     int64_t bytes, int64_t parts, int64_t timeout_ms, uint8_t* err,
                                     size_t err_cap);

/* Verifier. Tokens are 32-bit, gaps 32-bit floats or empty. classify returns the level and writes the margin
 * (a double). */
int64_t kvtf_verifier_create(const uint8_t* options, size_t options_len, const uint8_t* eos, size_t eos_len,
                             uint8_t* err, size_t err_cap);
void kvtf_verifier_destroy(int64_t verifier);
int64_t kvtf_verifier_next(int64_t verifier, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_verifier_drafted(int64_t verifier, const uint8_t* tokens, size_t tokens_len,
                              int64_t microseconds, uint8_t* err, size_t err_cap);
int64_t kvtf_verifier_loaded(int64_t verifier, int64_t status, int64_t microseconds, uint8_t* err,
                             size_t err_cap);
int64_t kvtf_verifier_verified(int64_t verifier, const uint8_t* tokens, size_t tokens_len,
                               const uint8_t* gaps, size_t gaps_len, int64_t microseconds, uint8_t* err,
                               size_t err_cap);
int64_t kvtf_verifier_rechecked(int64_t verifier, int64_t token, int64_t microseconds, uint8_t* err,
                                size_t err_cap);
int64_t kvtf_verifier_rolled_back(int64_t verifier, uint8_t* err, size_t err_cap);
int64_t kvtf_verifier_committed(int64_t verifier, uint8_t* err, size_t err_cap);
int64_t kvtf_verifier_cancel(int64_t verifier, uint8_t* err, size_t err_cap);
int64_t kvtf_verifier_stats(int64_t verifier, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_fidelity_classify(const uint8_t* alone, size_t alone_len, const uint8_t* batched,
                               size_t batched_len, const uint8_t* widths, size_t widths_len,
                               const uint8_t* places, size_t places_len, int64_t vocabulary, uint8_t* buf,
                               size_t cap, uint8_t* err, size_t err_cap);

/* Meter. */
int64_t kvtf_meter_create(int64_t runtime, uint8_t* err, size_t err_cap);
void kvtf_meter_destroy(int64_t meter);
int64_t kvtf_meter_json(int64_t meter, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_meter_advice(int64_t meter, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap);
int64_t kvtf_request_begin(int64_t meter, const uint8_t* way, size_t way_len, uint8_t* err, size_t err_cap);
int64_t kvtf_request_part(int64_t meter, int64_t request, int64_t part, uint8_t* err, size_t err_cap);
int64_t kvtf_request_attribute(int64_t meter, int64_t request, int64_t from, int64_t to, int64_t nanoseconds,
                               uint8_t* err, size_t err_cap);
int64_t kvtf_request_first_token(int64_t meter, int64_t request, uint8_t* err, size_t err_cap);
int64_t kvtf_request_count(int64_t meter, int64_t request, int64_t counter, int64_t amount, uint8_t* err,
                           size_t err_cap);
int64_t kvtf_request_end(int64_t meter, int64_t request, uint8_t* err, size_t err_cap);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_BINDINGS_FLAT_H_ */
