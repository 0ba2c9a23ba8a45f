/* What may still change in any release: calibration, and the profiles that the transform codec needs. Not
 * part of kvartet.h. */
#ifndef KVARTET_EXPERIMENTAL_H_
#define KVARTET_EXPERIMENTAL_H_

#include "base.h"
#include "key.h"
#include "model.h"
#include "planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A calibration gathers statistics of a model's KV from documents and makes a profile of them. 16,000 tokens
 * or more in documents of 1,000 to 2,000 tokens of all kinds that will be cached are a good start. */
typedef uint64_t kvt_calibration_t;

typedef struct kvt_calibration_options {
  uint32_t struct_size;
  uint32_t group_layers; /* layers that share a basis; frames of the transform codec cover whole groups. 0,
                            the default: a third of the layers, rounded up */
  uint32_t ratio_min; /* lowest ratio that the profile is for, 4 to 32; higher makes it smaller; default 4 */
  uint32_t layer_begin; /* layers that the profile is for; 0 and 0, the default: all */
  uint32_t layer_end;
  uint32_t head_begin; /* KV heads that the profile is for; 0 and 0, the default: all */
  uint32_t head_end;
  uint32_t reserved; /* 0 */
} kvt_calibration_options_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_calibration_options_init(kvt_calibration_options_t* options, size_t struct_size);

/* Begins a calibration.
 * @param options  NULL: defaults.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_UNSUPPORTED (fp8 rows); KVT_ERR_OUT_OF_MEMORY;
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Owner: the caller. Threads: any; calls on one calibration wait
 * for each other. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_calibration_create(kvt_model_t model, const kvt_calibration_options_t* options,
                                            kvt_calibration_t* calibration);

/* Continues a calibration from what kvt_calibration_save() wrote.
 * @return KVT_OK; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_MISMATCH (another model's);
 * KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Owner: the caller. Threads: any.
 * Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_calibration_restore(kvt_model_t model, const uint8_t* saved, size_t saved_len,
                                             kvt_calibration_t* calibration);

/* Ends a calibration; 0 and stale ids are accepted. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_calibration_destroy(kvt_calibration_t calibration);

/* Adds tokens [token_begin, token_begin + token_count) of a view, one document's. Tokens at positions 0 to 3
 * do not enter.
 * @param importance  what encoders will be given with such tokens (kvt_frame_spec_t.importance): token_count
 * values from -8 to 2, or NULL for zeros. The tables of codec dense fit it.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_OUT_OF_RANGE; KVT_ERR_MISMATCH (layers or heads are not
 * the calibration's); KVT_ERR_UNSUPPORTED; KVT_ERR_UNAVAILABLE; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any. Blocks: no (computes). Since: 0.1. */
KVT_API kvt_status_t kvt_calibration_add(kvt_calibration_t calibration, const kvt_view_t* view,
                                         uint64_t token_begin, uint64_t token_count,
                                         const int8_t* importance);

/* Sets what an error of a KV head's vector costs: e^T M e for an error e of one token's vector in a stream
 * and layer. For K in the frame where RoPE is undone: the mean of q q^T over the queries that read the head,
 * times what its values are worth; for V: W^T W, summed over the slices W of the output projection that read
 * it (docs/transform.md). Heads that are not set count all elements alike. A thousandth of the mean of M's
 * diagonal is added to its diagonal. Saving does not keep it; set it again after restoring.
 * @param matrix  symmetric positive semidefinite, by rows, head_dim x head_dim floats; count says how many.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_OUT_OF_RANGE (stream, layer or head are not the
 * calibration's); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no (computes). Since:
 * 0.1. */
KVT_API kvt_status_t kvt_calibration_set_metric(kvt_calibration_t calibration, uint32_t stream,
                                                uint32_t layer, uint32_t head, const float* matrix,
                                                size_t count);

/* Sets what a unit of error, in the metric, costs in one layer of a stream beside others: what it changes in
 * the model's output, measured. Only quotients matter; they are clipped to 1/1000 and 1,000 of their
 * geometric mean. Layers that are not set have that mean. Saving does not keep it.
 * @param weight  finite and above 0.
 * @return as kvt_calibration_set_metric. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_calibration_set_weight(kvt_calibration_t calibration, uint32_t stream,
                                                uint32_t layer, float weight);

typedef struct kvt_calibration_info {
  uint32_t struct_size;
  uint32_t documents;
  uint64_t tokens;    /* that entered */
  uint64_t nonfinite; /* NaN and infinities met; they entered as 0 and as the largest finite f16 */
} kvt_calibration_info_t;

/* What a calibration has seen.
 * @param info  out; struct_size set by the caller.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_calibration_progress(kvt_calibration_t calibration, kvt_calibration_info_t* info);

/* Copies out the state, to continue later with the same result.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_calibration_save(kvt_calibration_t calibration, uint8_t* buf, size_t cap,
                                          size_t* needed);

/* Makes the profile of all that was added and copies it out; it is kept until more is added.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_OUT_OF_RANGE (fewer than 64 tokens);
 * KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no (computes
 * for seconds). Since: 0.1. */
KVT_API kvt_status_t kvt_calibration_finish(kvt_calibration_t calibration, uint8_t* buf, size_t cap,
                                            size_t* needed);

/* Checks a profile whole and gives its fingerprint: the first 16 bytes of its SHA-256, without the rungs that
 * kvt_profile_set_rungs adds.
 * @return KVT_OK; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API kvt_status_t kvt_profile_fingerprint(const uint8_t* profile, size_t profile_len,
                                             uint8_t fingerprint[KVT_FINGERPRINT_BYTES]);

/* Describes a profile as JSON (UTF-8, no NUL) after checking it whole. `mflop` has, for codecs transform and
 * dense (by its trellis) at each ratio, the millions of multiplications and additions a token that its
 * products take each way.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_INVALID_ARGUMENT.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_profile_describe(const uint8_t* profile, size_t profile_len, char* buf, size_t cap,
                                          size_t* needed);

/* What a codec cost where it was measured on KV of the profile's model. */
typedef struct kvt_profile_rung {
  char codec[24];        /* kvt_codec_options_t.name, filled up with NULs, at least one */
  uint32_t ratio;        /* kvt_codec_options_t.ratio; 0 for a codec without */
  uint32_t reserved;     /* 0 */
  kvt_codec_rung_t cost; /* for kvt_planner_options_t; rates are those of one thread a side */
} kvt_profile_rung_t;

/* Copies out a profile with what rungs cost, in place of what it had. Fingerprint and key stay the same: with
 * or without rungs, it decodes the same frames. Rates are of the processor that they were measured on;
 * another one begins with them and learns its own by kvt_planner_observe.
 * @param rungs, count   at most 64; 0: the profile has none then.
 * @param processor      its name, 1 to 103 bytes of printable ASCII without " and \; ignored with count 0.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT (the field and value are named);
 * KVT_ERR_CORRUPT; KVT_ERR_VERSION. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_profile_set_rungs(const uint8_t* profile, size_t profile_len,
                                           const kvt_profile_rung_t* rungs, size_t count,
                                           const char* processor, size_t processor_len, uint8_t* buf,
                                           size_t cap, size_t* needed);

/* Copies out what a profile says that rungs cost, after checking it whole.
 * @param rungs  out. @param cap  in rungs. @param needed  out: rungs, also with KVT_ERR_BUFFER_TOO_SMALL; 0
 * for a profile that has none.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_INVALID_ARGUMENT.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_profile_rungs(const uint8_t* profile, size_t profile_len, kvt_profile_rung_t* rungs,
                                       size_t cap, size_t* needed);

/* The key under which caches and peers keep the profile of a fingerprint.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_profile_key(const uint8_t fingerprint[KVT_FINGERPRINT_BYTES],
                                     uint8_t key[KVT_KEY_BYTES]);

/* Wraps a profile in a frame of that key, to put into a cache or to serve to peers.
 * @param namespace_digest  NULL: zeros.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_INVALID_ARGUMENT.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_profile_wrap(const uint8_t* profile, size_t profile_len,
                                      const uint8_t* namespace_digest, uint8_t* buf, size_t cap,
                                      size_t* needed);

/* Checks such a frame whole and copies the profile out. Its key vouches for the profile, not for rungs that
 * follow it.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_MISMATCH (a frame of
 * something else, or under another key); KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_profile_unwrap(const uint8_t* frame, size_t frame_len, uint8_t* buf, size_t cap,
                                        size_t* needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_EXPERIMENTAL_H_ */
