/* Selection: which tokens of a sequence keep their KV, judged by the attention that its last queries pay.
 *
 * A selection is the host's to apply: it drops the other rows, keeps the positions of those that stay, and
 * counts them as the sequence's KV from then on. What was dropped is gone: a later question that needs it
 * gets a worse answer, so selections made for one question do not belong into a cache that serves others. */
#ifndef KVARTET_SELECT_H_
#define KVARTET_SELECT_H_

#include "base.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How tokens are chosen, in kvt_select_options_t.policy. Sinks and window are always kept. */
enum {
  KVT_SELECT_RECENT = 1, /* sinks and the most recent tokens; needs no attention (StreamingLLM, arXiv
                            2309.17453) */
  KVT_SELECT_SNAPKV =
      2,             /* attention of the last queries, summed over them and pooled over neighbours (SnapKV,
                        arXiv 2404.14469); made at the end of prefill, before the next question is known */
  KVT_SELECT_RKV = 3 /* attention of the last queries less the redundancy among keys (R-KV, arXiv
                        2505.24133); made again and again during a long generation */
};

/* What one choice is for, in kvt_select_options_t.scope. */
enum {
  KVT_SELECT_EACH_HEAD = 1, /* a layer and KV head: query heads that share it are averaged */
  KVT_SELECT_SEQUENCE = 2   /* all layers and heads together, for engines whose cells span them */
};

enum { KVT_POOL_AVERAGE = 1, KVT_POOL_MAX = 2 };

typedef struct kvt_select_options {
  uint32_t struct_size;
  uint32_t policy;   /* KVT_SELECT_*; default SNAPKV */
  uint32_t scope;    /* default EACH_HEAD */
  uint32_t budget;   /* tokens that a choice keeps, sinks and window included; >= 1; default 1,024 */
  uint32_t sinks;    /* first tokens always kept; default 4 */
  uint32_t window;   /* last tokens always kept; sinks + window <= budget; default 32 */
  uint32_t pool;     /* tokens that a score is pooled over, odd, 1 to 63; default 5 (R-KV's own: 7) */
  uint32_t pooling;  /* KVT_POOL_*; default AVERAGE (R-KV's own: MAX) */
  float relevance;   /* R-KV: weight of attention against redundancy, 0 to 1; default 0.1 */
  float similarity;  /* R-KV: cosine of keys above which they are redundant, -1 to 1; default 0.5 */
  float scale;       /* of logits, with queries; 0, the default: 1 / sqrt(k_dim) */
  uint32_t reserved; /* 0 */
} kvt_select_options_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_select_options_init(kvt_select_options_t* options, size_t struct_size);

/* What kvt_attention_t.kind says of its rows. */
enum {
  KVT_ATTENTION_QUERIES = 1, /* queries, rotated as the keys are: a row has k_dim floats */
  KVT_ATTENTION_ROWS =
      2 /* rows of attention, after softmax: a row has a float for each of the view's tokens */
};

/* Attention statistics of the sequence's last `rows` tokens, or of others. The row of query r, query head h
 * of layer l begins at base + (l - layer_begin) * layer_stride + h * head_stride + r * row_stride, strides in
 * bytes. A query sees the tokens up to its own. */
typedef struct kvt_attention {
  uint32_t struct_size;
  uint32_t kind;
  uint32_t layer_begin; /* layers that are judged; inside the view's */
  uint32_t layer_end;
  uint32_t heads; /* query heads: 1 to 1,024 times the view's KV heads; head h reads KV head h / (heads / KV
                     heads) */
  uint32_t rows;  /* 1 to the view's tokens; to choose tokens, at most 256 */
  const float* base;
  int64_t layer_stride; /* multiples of 4; may be negative */
  int64_t head_stride;
  int64_t row_stride;
  const uint32_t* row_tokens; /* for each row its token, an index into the view, ascending; NULL, the default:
                                 the view's last `rows` tokens */
} kvt_attention_t;

/* Fills zeros and struct_size. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_attention_init(kvt_attention_t* attention, size_t struct_size);

/* Chooses the tokens to keep.
 * @param view       the sequence's keys, with all tokens; values are not read. KVT_SELECT_RECENT and SNAPKV
 * over KVT_ATTENTION_ROWS read no keys either.
 * @param attention  NULL with KVT_SELECT_RECENT only.
 * @param options    NULL: defaults.
 * @param tokens     out: indices into the view, ascending, min(budget, view's tokens) of them for each
 * choice: one choice after another, by layer, then by KV head; with KVT_SELECT_SEQUENCE there is one. Equal
 * scores are decided for the earlier token.
 * @param needed     out: entries, also with KVT_ERR_BUFFER_TOO_SMALL.
 * NaN in keys, queries or rows counts as no attention. Work grows with rows x tokens, for R-KV with tokens
 * squared.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_OUT_OF_RANGE (layers beyond the
 * view's); KVT_ERR_UNSUPPORTED (keys of fp8); KVT_ERR_MISMATCH, KVT_ERR_UNAVAILABLE (the view);
 * KVT_ERR_OUT_OF_MEMORY; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no (computes).
 * Since: 0.1. */
KVT_API kvt_status_t kvt_select_tokens(kvt_model_t model, const kvt_view_t* view,
                                       const kvt_attention_t* attention, const kvt_select_options_t* options,
                                       uint32_t* tokens, size_t cap, size_t* needed);

/* Importance of a token is an exponent: the step that quantises it is multiplied by 2^(importance / 4). */
#define KVT_IMPORTANCE_MIN (-8) /* a quarter of the step */
#define KVT_IMPORTANCE_MAX 2    /* 1.41 times the step */

typedef struct kvt_importance_options {
  uint32_t struct_size;
  uint32_t distance; /* tokens between a key and the queries that count for it; default 64 */
  uint32_t sinks;    /* first tokens, which get much attention whatever they say: left out of the means;
                        default 4 */
  float shrinkage;   /* queries' worth of the mean that is added to each token's, >= 0; default 32 */
  float floor;       /* added to a weight whose mean is 1, 0 to 1; default 0.05 */
  float centre;      /* log2 of the weight whose importance is 0, -16 to 16; default -0.457 */
  float scale;       /* of logits, with queries; 0, the default: 1 / sqrt(k_dim) */
  uint32_t reserved; /* 0 */
} kvt_importance_options_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_importance_options_init(kvt_importance_options_t* options, size_t struct_size);

/* How finely each token is worth being stored, judged by the attention that it gets from queries far behind
 * it: for each layer and KV head the mean over these queries, relative to the mean over tokens; then the mean
 * w over layers and heads. Importance is 2 (centre - log2 w), rounded, and between KVT_IMPORTANCE_MIN and
 * _MAX.
 * @param view        the sequence's keys, with all tokens; read with KVT_ATTENTION_QUERIES only.
 * @param attention   rows from all parts of the sequence, for example of every fourth token (row_tokens). The
 * last tokens alone know nothing of what the middle looked at.
 * @param options     NULL: defaults.
 * @param importance  out: one value for each of the view's tokens; 0 for all where no query is far enough.
 * @param needed      out: the view's tokens, also with KVT_ERR_BUFFER_TOO_SMALL.
 * NaN in keys, queries or rows counts as no attention. Work grows with rows x tokens.
 * @return as kvt_select_tokens. Threads: any. Blocks: no (computes). Since: 0.1. */
KVT_API kvt_status_t kvt_token_importance(kvt_model_t model, const kvt_view_t* view,
                                          const kvt_attention_t* attention,
                                          const kvt_importance_options_t* options, int8_t* importance,
                                          size_t cap, size_t* needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_SELECT_H_ */
