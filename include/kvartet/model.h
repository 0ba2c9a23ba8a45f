/* Model, shard and view: whose KV it is, which part of it, and where the host keeps it. */
#ifndef KVARTET_MODEL_H_
#define KVARTET_MODEL_H_

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_model_t;

/* Element types of KV. FP8 is stored and moved; it is converted by codecs that say so. */
enum {
  KVT_ELEMENT_F32 = 1,
  KVT_ELEMENT_F16 = 2,
  KVT_ELEMENT_BF16 = 3,
  KVT_ELEMENT_FP8_E4M3 = 4,
  KVT_ELEMENT_FP8_E5M2 = 5
};

/* Streams of rows a layer has: KV has K (0) and V (1); MLA has one latent (0), partly rotated. */
enum { KVT_LAYOUT_KV = 1, KVT_LAYOUT_MLA = 2 };
enum { KVT_STREAM_K = 0, KVT_STREAM_V = 1, KVT_STREAM_LATENT = 0 };

enum {
  KVT_ROPE_NONE = 0,
  KVT_ROPE_INTERLEAVED = 1 /* pairs (2i, 2i+1) */,
  KVT_ROPE_HALF_SPLIT = 2 /* pairs (i, i + dims/2) */
};

enum { KVT_MEMORY_HOST = 1, KVT_MEMORY_PINNED = 2, KVT_MEMORY_CUDA = 3 };

#define KVT_FINGERPRINT_BYTES 16

/* Identity and geometry of what computed the KV. All pointers are borrowed for the call. */
typedef struct kvt_model_options {
  uint32_t struct_size;
  uint32_t layout;         /* KVT_LAYOUT_KV or KVT_LAYOUT_MLA; default KV */
  const uint8_t* model_id; /* digest of the weights, chosen by the host; 1 to 64 bytes */
  size_t model_id_len;
  const uint8_t* adapter; /* identity of an adapter such as a LoRA; NULL: none; up to 64 bytes */
  size_t adapter_len;
  uint32_t layers;            /* 1 to 1,024 */
  uint32_t kv_heads;          /* 1 to 1,024; 1 for MLA */
  uint32_t k_dim;             /* elements of a head's K row, or of the latent; 1 to 8,192 */
  uint32_t v_dim;             /* elements of a head's V row, 1 to 8,192; 0 for MLA */
  uint32_t element;           /* KVT_ELEMENT_*: the type that frames hold when kept raw; default F16 */
  uint32_t rope_style;        /* KVT_ROPE_*; default NONE */
  uint32_t rope_offset;       /* first rotated element of a row; 0 for K, latent width for MLA */
  uint32_t rope_dims;         /* rotated elements, even, rope_offset + rope_dims <= k_dim */
  double rope_base;           /* frequency of pair i is base^(-2i/dims); > 1, up to 1e30; 0 without a style */
  const double* rope_factors; /* scaling as data: the frequency of pair i is divided by factor i, 1e-6 to 1e6;
                                 NULL: none */
  size_t rope_factor_count;   /* 0 or rope_dims / 2 */
  double
      rope_magnitude; /* cos and sin are multiplied by it (YaRN's attention factor), 1e-3 to 1e3; default 1 */
} kvt_model_options_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_model_options_init(kvt_model_options_t* options, size_t struct_size);

/* Creates an immutable model description.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (the field and value are named); KVT_ERR_OUT_OF_MEMORY.
 * Owner: the caller; objects made from it keep what they need. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_model_create(const kvt_model_options_t* options, kvt_model_t* model);

/* Ends a model; 0 and stale ids are accepted. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_model_destroy(kvt_model_t model);

/* Writes the 128-bit fingerprint: the first 16 bytes of the SHA-256 of the canonical bytes.
 * @return KVT_OK; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_model_fingerprint(kvt_model_t model, uint8_t fingerprint[KVT_FINGERPRINT_BYTES]);

/* Copies the canonical bytes (docs/keys.md): equal bytes mean the same model.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_model_canonical(kvt_model_t model, uint8_t* buf, size_t cap, size_t* needed);

/* Compares two models.
 * @return KVT_OK when they are the same; KVT_ERR_MISMATCH with the first field that differs and both values
 * in the text; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_model_compare(kvt_model_t left, kvt_model_t right);

/* The part of a model that one rank holds. */
typedef struct kvt_shard {
  uint32_t struct_size;
  uint32_t layer_begin; /* layers [layer_begin, layer_end) */
  uint32_t layer_end;
  uint32_t head_begin; /* KV heads [head_begin, head_end) */
  uint32_t head_end;
  uint32_t block_tokens; /* tokens of a block, a multiple of 16; default 16 */
} kvt_shard_t;

/* Fills `shard` with the whole of `model` and 16-token blocks.
 * @return KVT_OK; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_shard_init(kvt_model_t model, kvt_shard_t* shard, size_t struct_size);

/* Where the host keeps KV. Borrowed for a call (or until an operation's completion).
 *
 * The element e of head h of token t in stream s of layer l is at
 *   bases[(l - layer_begin) * streams + s] + P(t) + (h - head_begin) * head_stride[s] + e * element_stride[s]
 *   P(t) = t * token_stride[s]                                                    without a block table
 *   P(t) = block_table[t / page_tokens] * page_stride[s] + (t % page_tokens) * token_stride[s]   with one
 * for tokens t in [0, tokens). All strides are in bytes and may be negative; where there is more than one
 * step, they are at least an element's size. Ids of the block table beyond the pages that `tokens` fill are
 * not read. Where rows overlap (a page twice in the table, bases that are equal), decoding leaves any one of
 * the rows that were written there. */
typedef struct kvt_view {
  uint32_t struct_size;
  uint32_t memory;  /* KVT_MEMORY_*; PINNED is host memory to the CPU; CUDA gives UNAVAILABLE until its module
                       is loaded */
  int32_t device;   /* device ordinal for CUDA, else 0 */
  uint32_t element; /* KVT_ELEMENT_* of the host's memory */
  uint32_t layer_begin; /* layers that `bases` covers */
  uint32_t layer_end;
  uint32_t head_begin; /* KV heads that the rows hold */
  uint32_t head_end;
  void* const* bases; /* (layer_end - layer_begin) * streams pointers */
  size_t base_count;
  int64_t token_stride[2]; /* per stream */
  int64_t head_stride[2];
  int64_t element_stride[2];
  int64_t page_stride[2];     /* with a block table */
  const int32_t* block_table; /* NULL: contiguous */
  size_t block_table_len;
  uint32_t page_tokens;    /* with a block table: tokens of a page, >= 1 */
  uint32_t reserved;       /* 0 */
  uint64_t tokens;         /* tokens that the view holds */
  uint64_t first_position; /* position of token 0 in its sequence */
  void* order_stream;      /* cudaStream_t to order with; NULL on the host */
} kvt_view_t;

/* Fills defaults: host memory, no table, zero strides. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_view_init(kvt_view_t* view, size_t struct_size);

/* Turns the rotary embedding of the rotated stream (K, or the latent's rotated part) of tokens [token_begin,
 * token_begin + count) of every layer and head of the view back (undo) or forth, in place, computing in
 * double and rounding once. A model without RoPE has nothing to turn.
 * @param undo  1: remove the rotation of position first_position + t; 0: apply it.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_OUT_OF_RANGE; KVT_ERR_UNSUPPORTED (fp8 rows);
 * KVT_ERR_UNAVAILABLE (device memory); KVT_ERR_MISMATCH (the view has layers or heads that the model has
 * not); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any, if no other uses the view. Blocks: no.
 * Since: 0.1. */
KVT_API kvt_status_t kvt_model_rope(kvt_model_t model, const kvt_view_t* view, uint64_t token_begin,
                                    uint64_t count, uint8_t undo);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_MODEL_H_ */
