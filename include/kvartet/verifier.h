/* The verifier: a passive state machine for one sequence that drafts on a lossy cache and commits only what
 * the full cache says.
 *
 * The host asks for the next action, carries it out with its own engine, and reports. The library never calls
 * the engine. Greedy rule (VeriCache, arXiv 2605.17613): the longest prefix of the draft that equals the full
 * cache's argmax is committed, then the full cache's own token. One token, the last committed one, is always
 * pending: it is in neither cache (both hold committed - 1 tokens). */
#ifndef KVARTET_VERIFIER_H_
#define KVARTET_VERIFIER_H_

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_verifier_t;

enum { KVT_VERIFIER_MAX_DRAFT = 256 };

/* Fidelity levels, measured by a probe and never assumed: C bitwise equal to decoding one by one; B equal but
 * for positions whose top-two gap is under `margin`, which are decided again alone; A equal only to verifying
 * with the same fixed, padded width; N none claimed. */
enum { KVT_FIDELITY_N = 0, KVT_FIDELITY_A = 1, KVT_FIDELITY_B = 2, KVT_FIDELITY_C = 3 };

/* Actions, in kvt_action_t.kind. */
enum {
  KVT_ACTION_DRAFT = 1,    /* decode n tokens greedily on the draft cache, starting from `pending`; report by
                              kvt_verifier_drafted */
  KVT_ACTION_PREFETCH = 2, /* bring in the full cache; report by kvt_verifier_loaded */
  KVT_ACTION_VERIFY = 3,  /* one forward of the full cache over pending + draft (n + 1 rows, padded to `width`
                             if that is larger); report by kvt_verifier_verified */
  KVT_ACTION_RECHECK = 4, /* level B: decode the row `n` alone on the full cache truncated to `full_length`;
                             report by kvt_verifier_rechecked */
  KVT_ACTION_ROLLBACK = 5, /* truncate both caches to the given lengths; report by kvt_verifier_rolled_back */
  KVT_ACTION_COMMIT = 6, /* tokens that are final: hand them to the user; report by kvt_verifier_committed */
  KVT_ACTION_FALLBACK =
      7, /* decode one token on the full cache alone; report by kvt_verifier_verified with one row */
  KVT_ACTION_DONE = 8
};

/* Why a sequence ended or fell back, in kvt_action_t.reason. */
enum {
  KVT_REASON_NONE = 0,
  KVT_REASON_EOS = 1,
  KVT_REASON_LENGTH = 2,
  KVT_REASON_CANCELLED = 3,
  KVT_REASON_UNPROFITABLE = 4,
  KVT_REASON_NO_DRAFT = 5,
  KVT_REASON_FULL_LATE = 6
};

typedef struct kvt_verifier_options {
  uint32_t struct_size;
  uint32_t draft_length; /* fixed length, 1 to KVT_VERIFIER_MAX_DRAFT; 0: adaptive. Default 8 */
  uint32_t draft_max;    /* adaptive: longest; default 32 */
  uint32_t width;        /* level A: fixed padded verify width; 0: none */
  int32_t fidelity;      /* KVT_FIDELITY_*, from the probe; default N */
  float margin;          /* level B: gap under which a row is decided again; > 0 */
  int32_t first_token;   /* the first token to continue from: sampled from the full cache's prefill; committed
                            and pending */
  uint32_t vocabulary;   /* ids are in [0, vocabulary) */
  uint64_t prompt_tokens; /* tokens that both caches hold at the start */
  uint64_t max_tokens;    /* tokens to commit at most, first_token included; >= 1 */
  const int32_t* eos;     /* ids that end the sequence; the EOS itself is committed */
  size_t eos_count;
  uint8_t full_ready;  /* 1: the full cache is there from the start; 0: PREFETCH comes first */
  uint8_t reserved[7]; /* 0 */
} kvt_verifier_options_t;

typedef struct kvt_action {
  uint32_t struct_size;
  int32_t kind;          /* KVT_ACTION_* */
  int32_t reason;        /* KVT_REASON_* */
  uint32_t n;            /* DRAFT: tokens to draft; VERIFY: drafted tokens; COMMIT: tokens; RECHECK: row */
  uint32_t width;        /* VERIFY: rows to submit */
  int32_t pending;       /* the last committed token */
  uint64_t draft_length; /* ROLLBACK: tokens that the draft cache keeps */
  uint64_t full_length;  /* ROLLBACK, RECHECK: tokens that the full cache keeps */
  int32_t tokens[KVT_VERIFIER_MAX_DRAFT + 1]; /* VERIFY: pending then draft; COMMIT: the tokens */
} kvt_action_t;

typedef struct kvt_verifier_stats_s {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t rounds, drafted, accepted, committed, fallbacks, rechecks, nonfinite;
  double acceptance; /* probability that a drafted token is accepted given that those before it in the draft
                        were */
  double mean_accepted; /* accepted tokens a round */
} kvt_verifier_stats_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_verifier_options_init(kvt_verifier_options_t* options, size_t struct_size);

/* @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (field and value). Owner: the caller. Threads: any; one verifier,
 * one thread at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_create(const kvt_verifier_options_t* options, kvt_verifier_t* verifier);
KVT_API void kvt_verifier_destroy(kvt_verifier_t verifier);

/* The action to carry out now; asking again gives the same until it is reported. @param action out;
 * struct_size set by the caller.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: one at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_next(kvt_verifier_t verifier, kvt_action_t* action);

/* Reports a draft: count <= n tokens (fewer when the host stops early; 0 gives a fallback step). @param
 * microseconds  measured time of the draft.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (an id outside of the vocabulary, more than asked for, or another
 * action is due); handles. Threads: one at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_drafted(kvt_verifier_t verifier, const int32_t* tokens, size_t count,
                                          uint64_t microseconds);

/* Reports that the full cache is in place (status KVT_OK) or is not (any error: the sequence cannot commit
 * and the next action is PREFETCH again, or DONE with KVT_REASON_FULL_LATE once the host gives up by
 * kvt_verifier_cancel). Threads: one at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_loaded(kvt_verifier_t verifier, kvt_status_t status, uint64_t microseconds);

/* Reports the full cache's rows, pending's first: argmax and top-two logit gap of each (gaps may be NULL
 * unless level B). A NaN gap marks a row whose logits were not finite: it commits nothing and the round is
 * refused with KVT_ERR_CORRUPT; the action stays due. Rows beyond a mismatch are ignored. count is n + 1 (or
 * 1 for FALLBACK). Threads: one at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_verified(kvt_verifier_t verifier, const int32_t* tokens, const float* gaps,
                                           size_t count, uint64_t microseconds);

/* Report that the action of that name was carried out: the token that the recheck of one row gave, the tails
 * cut off both caches, the tokens handed on.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (another action is due); handles. Threads: one at a time. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_rechecked(kvt_verifier_t verifier, int32_t token, uint64_t microseconds);
KVT_API kvt_status_t kvt_verifier_rolled_back(kvt_verifier_t verifier);
KVT_API kvt_status_t kvt_verifier_committed(kvt_verifier_t verifier);

/* Ends the sequence at once: what was committed stays; the next action is DONE. Threads: one at a time.
 * Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_cancel(kvt_verifier_t verifier);

/* @param stats out; struct_size set by the caller. Threads: one at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_stats(kvt_verifier_t verifier, kvt_verifier_stats_t* stats);

/* Classifies a start-up probe. The host decodes the same tokens one by one and inside batches of several
 * widths and row places, and reports each pair of logit rows; the library compares bits.
 * @param alone, batched  rows x vocabulary logits of the same tokens. @param widths  for each row the width
 * of its batch. @param places  its row in the batch.
 * @param level out. @param margin out: twice the largest difference seen; 0 at level C. Source: reference
 * [verification of lossy caches], section 6.4. Level C: all rows bitwise equal. B: argmax equal in all rows
 * and differences finite. A: not B, but rows of one width are equal to each other at every place. N: else.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (fewer than two rows, or a NaN). Threads: any. Blocks: no. Since:
 * 0.1. */
KVT_API kvt_status_t kvt_fidelity_classify(const float* alone, const float* batched, size_t rows,
                                           size_t vocabulary, const uint32_t* widths, const uint32_t* places,
                                           int32_t* level, float* margin);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_VERIFIER_H_ */
