/* Codecs turn a view into frames and back. A frame is checked in the pass that decodes it; what is not whole,
 * or not what the caller expects, is an error that names the field. */
#ifndef KVARTET_CODEC_H_
#define KVARTET_CODEC_H_

#include "base.h"
#include "key.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_codec_t;

/* Largest frame the format allows. */
#define KVT_FRAME_BYTES_MAX ((uint64_t)1 << 40)

typedef struct kvt_codec_options {
  uint32_t struct_size;
  uint32_t group_tokens;   /* kivi: tokens that share K's scale in a channel, 16 to 1,024; default 32 */
  uint32_t group_channels; /* kivi: channels that share V's scale in a token, 8 to 8,192; default 32; capped
                              at the row */
  uint32_t quantiser;      /* dense: KVT_QUANTISER_*; 0, the default: TRELLIS; others: 0 */
  const char* name;        /* one of the names below; NULL with length 0, the default: "raw" */
  size_t name_len;
  const uint8_t* profile; /* transform, dense, kvtc: a profile's bytes (experimental.h), copied */
  size_t profile_len;
  uint32_t ratio;  /* transform, dense, kvtc: raw bytes of coded tokens to their stored bytes; 4 to 32 (dense:
                      8 to 96, kvtc: 4 to 96), and not below what the profile was calibrated for. 0, the
                      default: 16 (dense: 20) */
  uint32_t exempt; /* dense: KVT_EXEMPT_*; 0, the default: FINER; others: 0 */
} kvt_codec_options_t;

/* How dense keeps exempt tokens, in kvt_codec_options_t.exempt; other codecs keep them raw. */
enum {
  KVT_EXEMPT_RAW = 1,
  KVT_EXEMPT_INT8 = 2, /* as codec int8 */
  KVT_EXEMPT_FINER = 3 /* the first ones and the last 32 as codec int8, the others coded with a quarter of the
                          step */
};

/* How dense rounds components, in kvt_codec_options_t.quantiser. Any codec with the profile decodes both. */
enum {
  KVT_QUANTISER_TRELLIS = 1, /* trellis-coded quantisation with 8 states */
  KVT_QUANTISER_SCALAR = 2   /* one uniform quantiser: faster to encode, and loses more at the same bytes */
};

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_codec_options_init(kvt_codec_options_t* options, size_t struct_size);

/* Creates a codec for a model.
 * - raw: rows as the model's element type, bit-exact.
 * - lossless: the same, bit-exact, in fewer bytes where its coding pays.
 * - nested_coarse, nested_rest: lossless in two frames. The coarse one has signs, exponents and one or two
 *   bits of mantissas, and decodes alone. The other one, decoded into a view that holds what the coarse one
 *   gave, makes the rows bit-exact; KVT_ERR_MISMATCH when the view does not hold that. NaN and infinities
 *   stay.
 * - cachegen: of each ten tokens one in 8 bits, the others as differences to it, coarser in later layers,
 *   entropy coded (CacheGen, arXiv 2310.07240).
 * - int8: symmetric, one f16 scale per token and head.
 * - fp8, fp8_e5m2: E4M3 or E5M2, one f16 scale per token and head.
 * - kivi2, kivi4, kivi8: asymmetric 2, 4 or 8 bits; K per channel over groups of tokens, V per token over
 *   groups of channels; f16 scale and minimum a group (KIVI, arXiv 2402.02750).
 * - rotated2, rotated3, rotated4: 2, 3 or 4 bits, Lloyd-Max levels of randomly rotated heads, whose norms are
 *   kept (TurboQuant, arXiv 2504.19874). rotated4v2 and the like give V another width.
 * - transform: a calibrated projection of groups of layers, and static bits for each of its components; a
 *   frame's layers are whole groups of the profile, and its heads are the profile's.
 * - dense: the same projection, one step for all components, trellis-coded quantisation (or scalar) and range
 *   coding; its ratio is what calibration found, that of other text differs.
 * - kvtc: the same projection as published (KVTC, arXiv 2511.01815): blocks of components in 2 or 4 bits, fp8
 *   or none, then DEFLATE, which its ratio does not count.
 *
 * NaN and infinities in lossy codecs: NaN decodes as 0 and infinities as the largest finite value of their
 * group's type, and both are counted; raw keeps every bit.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_UNSUPPORTED (an unknown name, or a lossy codec on fp8
 * rows); KVT_ERR_CORRUPT, KVT_ERR_VERSION, KVT_ERR_MISMATCH (a profile that is damaged, or of another
 * model); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Owner: the caller. Threads: any; a codec is immutable
 * and may be shared. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_codec_create(kvt_model_t model, const kvt_codec_options_t* options,
                                      kvt_codec_t* codec);

/* Ends a codec; 0 and stale ids are accepted; operations in flight keep what they need. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API void kvt_codec_destroy(kvt_codec_t codec);

/* What a frame is of: written by encode, demanded by decode. */
typedef struct kvt_frame_spec {
  uint32_t struct_size;
  uint32_t layer_begin; /* layers [layer_begin, layer_end); encode: written; decode: wanted. 0 and 0, the
                           default: all of the view's */
  uint32_t layer_end;
  uint32_t exempt_first; /* encode: this many first tokens of the frame are kept raw (attention sinks);
                            decode: ignored */
  uint32_t exempt_last;  /* encode: this many last tokens of the frame are kept raw (recent window); decode:
                            ignored */
  uint32_t reserved;     /* 0 */
  uint64_t token_begin;  /* first token inside the view */
  uint64_t token_count;  /* tokens of the frame, at least 1 */
  uint8_t key[KVT_KEY_BYTES]; /* of the block or run; all zero: unnamed */
  uint8_t namespace_digest[KVT_NAMESPACE_DIGEST_BYTES];
  /* The position checked is the view's first_position + token_begin, but with `positions`. */
  const int8_t* importance;  /* encode by dense: how much finer than others a token's step is, token_count
                                values in quarters of an octave, from -8 (4 times finer) to 2; see
                                kvt_token_importance. NULL, the default: all 0. Decode: ignored */
  const uint64_t* positions; /* of selected tokens (select.h): token_count positions in the sequence,
                                ascending, each below 2^64 - 1 and less than 2^32 behind the first; at most 3
                                x 2^20 of them. NULL, the default: consecutive ones from the position above */
} kvt_frame_spec_t;

/* Selected tokens: the view holds their rows one after another, or all rows behind a block table with pages
 * of one token, whose ids are what kvt_select_tokens chose. Where layers or heads keep different tokens, each
 * has a view, and a frame, of its own. A frame of selected tokens says their positions, and is decoded only
 * with the same ones in the spec (kvt_frame_positions reads them): in any other way it is KVT_ERR_MISMATCH.
 * Codecs that undo RoPE (transform and its kin) take consecutive tokens only: KVT_ERR_UNSUPPORTED. */

/* Fills defaults: zero key and digest, all layers of the view, no exempt tokens. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API void kvt_frame_spec_init(kvt_frame_spec_t* spec, size_t struct_size);

/* What a codec did. */
typedef struct kvt_codec_report {
  uint32_t struct_size;
  uint32_t segments;      /* segments written or checked */
  uint64_t frame_bytes;   /* the whole frame */
  uint64_t decoded_bytes; /* rows at the view's element size */
  uint64_t nonfinite;     /* encode by a lossy codec: NaN and infinities met */
  uint64_t checksums;     /* checksums computed or verified */
} kvt_codec_report_t;

/* An upper bound of the frame that encode would write for `spec`; no row is read.
 * @return KVT_OK and as kvt_codec_encode. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_codec_bound(kvt_codec_t codec, const kvt_view_t* view, const kvt_frame_spec_t* spec,
                                     uint64_t* bytes);

/* Encodes tokens of a view into one frame.
 * @param buf, cap  out: the frame; 64-byte alignment is fastest, none is required. @param needed out: the
 * frame's bytes, or with KVT_ERR_BUFFER_TOO_SMALL the bound.
 * @param report    out, may be NULL; struct_size set by the caller.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_OUT_OF_RANGE (tokens or layers
 * beyond the view); KVT_ERR_UNSUPPORTED; KVT_ERR_UNAVAILABLE (device memory); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no (computes). Since: 0.1. */
KVT_API kvt_status_t kvt_codec_encode(kvt_codec_t codec, const kvt_view_t* view, const kvt_frame_spec_t* spec,
                                      uint8_t* buf, size_t cap, size_t* needed, kvt_codec_report_t* report);

/* Checks a frame against `spec` and decodes it into the view, converting to the view's element type. Any
 * codec of the same model decodes any frame: the frame says how it was made.
 * @return KVT_OK: every byte asked for was checked and written. Otherwise the rows written so far are
 * unspecified and must not be used: KVT_ERR_CORRUPT; KVT_ERR_MISMATCH (names model, shard, key, namespace,
 * position or layers); KVT_ERR_VERSION; KVT_ERR_PROFILE_MISSING; KVT_ERR_INVALID_ARGUMENT;
 * KVT_ERR_OUT_OF_RANGE; KVT_ERR_UNSUPPORTED; KVT_ERR_UNAVAILABLE; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any. Blocks: no (computes). Since: 0.1. */
KVT_API kvt_status_t kvt_codec_decode(kvt_codec_t codec, const uint8_t* frame, size_t frame_len,
                                      const kvt_frame_spec_t* spec, const kvt_view_t* view,
                                      kvt_codec_report_t* report);

/* Checks a frame whole (structure and every checksum) without decoding. No model is needed.
 * @return KVT_OK; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API kvt_status_t kvt_frame_verify(const uint8_t* frame, size_t frame_len);

/* Copies out the position of each of a frame's tokens, ascending, after checking the header.
 * @param positions  out. @param needed out: tokens, also with KVT_ERR_BUFFER_TOO_SMALL.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_INVALID_ARGUMENT.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_frame_positions(const uint8_t* frame, size_t frame_len, uint64_t* positions,
                                         size_t cap, size_t* needed);

/* Describes a frame's header as JSON (UTF-8, no NUL) after checking the header.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_INVALID_ARGUMENT.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_frame_describe(const uint8_t* frame, size_t frame_len, char* buf, size_t cap,
                                        size_t* needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_CODEC_H_ */
