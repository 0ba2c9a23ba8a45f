/* Selection: which tokens of a sequence keep their KV, judged by the attention that its queries pay; and how
 * finely each is worth being stored.
 *
 * A selection is the host's to apply: it drops the other rows, keeps the positions of those that stay, and
 * counts them as the sequence's KV from then on. What was dropped is gone: a later question that needs it
 * gets a worse answer, so selections made for one question do not belong into a cache that serves others
 * (nor do they fit prefix caching, which names blocks by all tokens before them). Each call is for one
 * sequence: of a batch every sequence is judged by its own queries. */
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

/* CaM (ICML 2024): tokens that a choice drops leave their V to kept tokens behind them; K is not merged. On
 * some texts it gains much, on others nothing (arXiv 2607.05399), and what is merged cannot be taken apart
 * again: never into a cache that other requests share. */
typedef struct kvt_merge_options {
  uint32_t struct_size;
  uint32_t scope;    /* KVT_SELECT_*: what each choice in `tokens` is for; default EACH_HEAD */
  uint32_t window;   /* last tokens whose mean attention a dropped token is compared with, >= 1; default 32 */
  uint32_t span;     /* kept tokens that share a dropped token's V, 1 to 1,024; default 32 */
  uint64_t seed;     /* of the draws; default 0 */
  float scale;       /* of logits, with queries; 0, the default: 1 / sqrt(k_dim) */
  uint32_t reserved; /* 0 */
} kvt_merge_options_t;

/* V of token `from` times `weight` is added to V of tokens[to] to tokens[to + count - 1]. */
typedef struct kvt_merge {
  uint32_t layer;
  uint32_t head; /* KV head */
  uint32_t from; /* index into the view */
  uint32_t to;   /* index into `tokens` */
  uint32_t count;
  float weight; /* 1 / span */
} kvt_merge_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_merge_options_init(kvt_merge_options_t* options, size_t struct_size);

/* Says which dropped tokens are merged: each with the chance that its attention is of the window's mean (1 if
 * more), drawn anew for each layer, KV head and token, and the same for the same seed. Query heads that share
 * a KV head are averaged. A dropped token without a kept one behind it is not merged.
 * @param attention   what CaM looks at is the last query; several are averaged.
 * @param options     NULL: defaults.
 * @param tokens, token_count  what kvt_select_tokens chose with the same scope and layers.
 * @param merges      out: by layer, KV head and token.
 * @param needed      out: merges, also with KVT_ERR_BUFFER_TOO_SMALL.
 * @return as kvt_select_tokens. Threads: any. Blocks: no (computes). Since: 0.1. */
KVT_API kvt_status_t kvt_select_merges(kvt_model_t model, const kvt_view_t* view,
                                       const kvt_attention_t* attention, const kvt_merge_options_t* options,
                                       const uint32_t* tokens, size_t token_count, kvt_merge_t* merges,
                                       size_t cap, size_t* needed);

/* Merges in place, in the view's V rows, before the host drops tokens. Every row is read before any of its
 * layer and head is written, and each sum is rounded once. NaN and infinities are not merged.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_OUT_OF_RANGE (a merge beyond the view or `tokens`);
 * KVT_ERR_UNSUPPORTED (rows of fp8, a latent); KVT_ERR_MISMATCH, KVT_ERR_UNAVAILABLE (the view);
 * KVT_ERR_OUT_OF_MEMORY; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. With an error nothing is written.
 * Threads: any, if no other uses the view. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_merges_apply(kvt_model_t model, const kvt_view_t* view, const uint32_t* tokens,
                                      size_t token_count, const kvt_merge_t* merges, size_t merge_count);

/* ThinKV (arXiv 2510.01290): a long chain of thought is cut into thoughts of 128 tokens or so, each is of one
 * of three kinds by the sparsity of its attention, and thoughts are thinned by kind and age, down to 4 tokens
 * of 128. The host, at the end of each thought: kvt_thought_sparsity with the thought's queries, and the kind
 * by two thresholds; kvt_thoughts_step; kvt_select_thoughts, and drop the rest. Few bits alone make a model
 * think longer, up to five times in the paper, which eats the saving: measure the length of outputs. The
 * method fails where sparsities have no three modes. */
enum {
  KVT_THOUGHT_REASONING = 1,
  KVT_THOUGHT_EXECUTION = 2, /* the least sparse */
  KVT_THOUGHT_TRANSITION = 3 /* the sparsest: the model turns to something else */
};

typedef struct kvt_thought {
  uint32_t kind;   /* KVT_THOUGHT_* */
  uint32_t length; /* tokens that it had when it ended, >= 1 */
  uint32_t held;   /* of these, in the view, 1 to length; after dropping the host sets it to `keep` */
  uint32_t level;  /* how often it was thinned, 0 to 5; begins as 0 and is kvt_thoughts_step's */
  uint32_t keep;   /* out: tokens that stay, the same for all layers and heads */
  uint32_t bits;   /* out: class of bits that its KV is worth, 4 or 2 (TRANSITION) */
} kvt_thought_t;

typedef struct kvt_thought_options {
  uint32_t struct_size;
  uint32_t scope;  /* KVT_SELECT_*: what a choice is for; default EACH_HEAD */
  uint32_t budget; /* tokens that thoughts keep together, as far as thinning reaches; default 1,024 */
  uint32_t prefix; /* tokens of the view before the first thought, the prompt: all are kept; default 0. So are
                      tokens behind the last thought */
  float least;     /* share of a row's highest weight under which a weight counts as none; default 0.01 */
  float scale;     /* of logits, with queries; 0, the default: 1 / sqrt(k_dim) */
  uint64_t seed;   /* of the first centres; default 0 */
} kvt_thought_options_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_thought_options_init(kvt_thought_options_t* options, size_t struct_size);

/* How sparse attention is: the share of tokens seen that get less than `least` of what the one most looked at
 * gets, the mean over the given queries, for each of the attention's layers. The host takes the mean of the
 * layers that tell kinds apart in its calibration; under the lower threshold a thought is EXECUTION, over the
 * higher one TRANSITION.
 * @param sparsity  out: a value for each layer. @param needed out: layers, also with
 * KVT_ERR_BUFFER_TOO_SMALL.
 * @return as kvt_select_tokens. Threads: any. Blocks: no (computes). Since: 0.1. */
KVT_API kvt_status_t kvt_thought_sparsity(kvt_model_t model, const kvt_view_t* view,
                                          const kvt_attention_t* attention,
                                          const kvt_thought_options_t* options, float* sparsity, size_t cap,
                                          size_t* needed);

/* The thresholds that part the sparsities of a calibration's thoughts: the minima of their smoothed density.
 * @param sparsities, count  one of each thought, 0 to 1; at least 16.
 * @return KVT_OK; KVT_ERR_NOT_FOUND (not exactly three modes: take other layers); KVT_ERR_INVALID_ARGUMENT;
 * KVT_ERR_OUT_OF_MEMORY. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_thought_thresholds(const float* sparsities, size_t count, float* low, float* high);

/* Thins what is too much once the last of `thoughts` has ended: after a TRANSITION every earlier one goes a
 * level down (64, 32, 16, 8, 4 of 128 tokens); while thoughts keep more than the budget, the earliest of the
 * least kind (TRANSITION, then EXECUTION, then REASONING) does. Sets level, keep and bits.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (nothing is changed). Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_thoughts_step(const kvt_thought_options_t* options, kvt_thought_t* thoughts,
                                       size_t count);

/* Chooses `keep` tokens of each thought: those nearest the centres of as many clusters of its keys.
 * @param view      the keys of the prefix, of what the thoughts still hold, in this order, and of what
 * follows.
 * @param tokens    out: indices into the view, as kvt_select_tokens, for the view's layers.
 * @param needed    out: entries, also with KVT_ERR_BUFFER_TOO_SMALL.
 * @return as kvt_select_tokens; KVT_ERR_OUT_OF_RANGE also when thoughts hold more tokens than the view.
 * Threads: any. Blocks: no (computes). Since: 0.1. */
KVT_API kvt_status_t kvt_select_thoughts(kvt_model_t model, const kvt_view_t* view,
                                         const kvt_thought_options_t* options, const kvt_thought_t* thoughts,
                                         size_t count, uint32_t* tokens, size_t cap, size_t* needed);

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
