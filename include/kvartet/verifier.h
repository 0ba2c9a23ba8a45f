/* The verifier: a passive state machine for one sequence that drafts on a lossy cache and commits only what
 * the full cache says.
 *
 * The host asks for the next action, carries it out with its own engine, and reports. The library never calls
 * the engine. Greedy rule (VeriCache, arXiv 2605.17613): the longest prefix of the draft that equals the full
 * cache's argmax is committed, then the full cache's own token.
 *
 * Lengths. One token, the last committed one, is always pending: it is in neither cache. Between rounds the
 * full cache holds committed - 1 tokens (the prompt counts as committed); the draft cache holds a prefix of
 * the same, and each DRAFT names the tokens that it lacks.
 *
 * A round: DRAFT, PREFETCH if the full cache is not there, VERIFY (level B: perhaps RECHECK), ROLLBACK,
 * COMMIT. A round without a draft: PREFETCH if need be, FALLBACK, ROLLBACK, COMMIT. PREFETCH comes after the
 * draft so that a load which the host has begun early is hidden by drafting. */
#ifndef KVARTET_VERIFIER_H_
#define KVARTET_VERIFIER_H_

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_verifier_t;

enum { KVT_VERIFIER_MAX_DRAFT = 256 };

/* Fidelity levels, measured by a probe and never assumed: C bitwise equal to decoding one by one; B equal but
 * for positions whose top-two gap is at most `margin`, which are decided again alone; A equal only to
 * verifying with the same fixed, padded width; N none claimed. */
enum { KVT_FIDELITY_N = 0, KVT_FIDELITY_A = 1, KVT_FIDELITY_B = 2, KVT_FIDELITY_C = 3 };

/* Actions, in kvt_action_t.kind. */
enum {
  KVT_ACTION_DRAFT = 1,    /* on the draft cache, which holds draft_length tokens: decode tokens[0] to
                              tokens[width - 1] (pending is the last; usually the only one), then draft n tokens
                              greedily; the last drafted token need not be decoded. Report by
                              kvt_verifier_drafted */
  KVT_ACTION_PREFETCH = 2, /* wait until the full cache is in place, its length full_length; report by
                              kvt_verifier_loaded. The load itself may have begun at any time before */
  KVT_ACTION_VERIFY = 3,   /* one forward of the full cache over tokens[0] (pending) to tokens[n], padded to
                              `width` rows if that is more; report by kvt_verifier_verified with n + 1 rows */
  KVT_ACTION_RECHECK = 4,  /* level B: truncate the full cache to full_length and decode tokens[n] alone;
                              report  by kvt_verifier_rechecked */
  KVT_ACTION_ROLLBACK = 5, /* truncate both caches to the given lengths; neither is longer than what the cache
                              holds; report by kvt_verifier_rolled_back */
  KVT_ACTION_COMMIT = 6,   /* tokens[0] to tokens[n - 1] are final: hand them to the user; report by
                              kvt_verifier_committed */
  KVT_ACTION_FALLBACK = 7, /* decode tokens[0] (pending) on the full cache alone, at level A padded to `width`
                              rows; report by kvt_verifier_verified with one row */
  KVT_ACTION_DONE = 8
};

/* Why a sequence ended, fell back or waits again, in kvt_action_t.reason. */
enum {
  KVT_REASON_NONE = 0,
  KVT_REASON_EOS = 1,       /* DONE: an end-of-sequence token was committed */
  KVT_REASON_LENGTH = 2,    /* DONE: max_tokens are committed. FALLBACK: there is room for one token only */
  KVT_REASON_CANCELLED = 3, /* DONE */
  KVT_REASON_UNPROFITABLE = 4, /* FALLBACK: drafting would not be faster at the moment; it is tried again */
  KVT_REASON_NO_DRAFT = 5, /* FALLBACK: the host drafted nothing, or the draft cache lacks more tokens than
                              an action can carry */
  KVT_REASON_FULL_LATE = 6 /* PREFETCH: the last load failed. DONE: cancelled after that */
};

typedef struct kvt_verifier_options {
  uint32_t struct_size;
  uint32_t draft_length;  /* fixed length, 1 to KVT_VERIFIER_MAX_DRAFT; 0: adaptive. Default 8 */
  uint32_t draft_max;     /* adaptive: longest, 1 to KVT_VERIFIER_MAX_DRAFT; default 32 */
  uint32_t width;         /* padded verify width; 0: none. Level A: at least the longest draft and one */
  int32_t fidelity;       /* KVT_FIDELITY_*, from the probe; default N */
  float margin;           /* level B: gap at or under which a row is decided again; > 0 */
  int32_t first_token;    /* the first token to continue from: sampled from the full cache's prefill, and
                             handed to the user by the host; committed and pending */
  uint32_t vocabulary;    /* ids are in [0, vocabulary) */
  uint64_t prompt_tokens; /* tokens that both caches hold at the start */
  uint64_t max_tokens;    /* tokens to commit at most, first_token included; >= 1 */
  const int32_t* eos;     /* ids that end the sequence; the EOS itself is committed */
  size_t eos_count;
  uint8_t full_ready;  /* 1: the full cache is there from the start; 0: PREFETCH comes before its first use */
  uint8_t full_reload; /* 1: the host lets the full cache go after each round; PREFETCH comes in every round.
                          Default 0 */
  uint8_t reserved[6]; /* 0 */
} kvt_verifier_options_t;

typedef struct kvt_action {
  uint32_t struct_size;
  int32_t kind;          /* KVT_ACTION_* */
  int32_t reason;        /* KVT_REASON_* */
  uint32_t n;            /* DRAFT: tokens to draft; VERIFY: drafted tokens; COMMIT: tokens; RECHECK: index in
                            tokens */
  uint32_t width;        /* DRAFT: tokens to decode first; VERIFY, RECHECK, FALLBACK: rows to submit */
  int32_t pending;       /* the last committed token */
  uint64_t draft_length; /* tokens that the draft cache holds; ROLLBACK: that it keeps */
  uint64_t
      full_length; /* tokens that the full cache holds before the action's rows; ROLLBACK: that it keeps */
  int32_t tokens[KVT_VERIFIER_MAX_DRAFT + 1]; /* DRAFT: what the draft cache lacks, pending last; VERIFY,
                                                 RECHECK, FALLBACK: pending then draft; COMMIT: the tokens */
} kvt_action_t;

typedef struct kvt_verifier_stats_s {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t rounds;    /* verified drafts */
  uint64_t drafted;   /* tokens that the host drafted */
  uint64_t accepted;  /* drafted tokens that were committed */
  uint64_t committed; /* tokens, first_token included */
  uint64_t fallbacks; /* steps on the full cache alone */
  uint64_t rechecks;
  uint64_t nonfinite; /* rows refused because their gap was not a number */
  double acceptance;  /* probability that a drafted token is accepted given that those before it in the draft
                         were; 0 before the first verdict */
  double mean_accepted; /* accepted tokens a round */
} kvt_verifier_stats_t;

/* Fills defaults for a structure of `struct_size` bytes; first_token, vocabulary, prompt_tokens and
 * max_tokens are left 0 for the host to set. A NULL pointer or a size below that of the first release is
 * ignored. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_verifier_options_init(kvt_verifier_options_t* options, size_t struct_size);

/* Creates the verifier of one sequence.
 * @param options   read during the call; `eos` is copied.
 * @param verifier  out.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (the field and value are named); KVT_ERR_OUT_OF_MEMORY.
 * Owner: the caller, who ends it with kvt_verifier_destroy. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_create(const kvt_verifier_options_t* options, kvt_verifier_t* verifier);

/* Destroys a verifier; 0 and stale ids are accepted. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_verifier_destroy(kvt_verifier_t verifier);

/* The action to carry out now; asking again gives the same until it is reported.
 * @param action  out; struct_size set by the caller.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (action is NULL or of a wrong size); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_next(kvt_verifier_t verifier, kvt_action_t* action);

/* Reports a draft.
 * @param tokens, count  at most n tokens: fewer when the host stops early; 0 (tokens may be NULL) makes the
 *                       round a step on the full cache alone.
 * @param microseconds   measured time of the draft.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (an id outside of the vocabulary, more than asked for, or another
 * action is due; nothing changed); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_drafted(kvt_verifier_t verifier, const int32_t* tokens, size_t count,
                                          uint64_t microseconds);

/* Reports how a PREFETCH ended.
 * @param status        KVT_OK: the full cache is in place. Any error: it is not; nothing can be committed,
 * and the next action is PREFETCH again, or DONE with KVT_REASON_FULL_LATE once the host gives up by
 * kvt_verifier_cancel.
 * @param microseconds  the time that was waited and that drafting did not hide.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (a positive status, or another action is due);
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_loaded(kvt_verifier_t verifier, kvt_status_t status, uint64_t microseconds);

/* Reports the full cache's rows after a VERIFY or FALLBACK, pending's first.
 * @param tokens, count  the argmax of each row; count is n + 1, or 1 for FALLBACK. Padding is not reported.
 * @param gaps           the top-two logit gap of each row; NULL unless level B. A NaN marks a row whose
 * logits were not finite.
 * @param microseconds   measured time of the forward.
 * Rows beyond a mismatch, an end of sequence or a row to decide again are not read.
 * @return KVT_OK; KVT_ERR_CORRUPT (a NaN gap: the round commits nothing and the action stays due);
 * KVT_ERR_INVALID_ARGUMENT (an id outside of the vocabulary, a negative gap, another count, gaps missing at
 * level B, or another action is due; nothing changed); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_verified(kvt_verifier_t verifier, const int32_t* tokens, const float* gaps,
                                           size_t count, uint64_t microseconds);

/* Reports the token that the row of a RECHECK gave when it was decoded alone. The round ends at that row.
 * @param token         its argmax.
 * @param microseconds  measured time.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (an id outside of the vocabulary, or another action is due);
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_rechecked(kvt_verifier_t verifier, int32_t token, uint64_t microseconds);

/* Reports that both caches are truncated as ROLLBACK asked.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (another action is due); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_rolled_back(kvt_verifier_t verifier);

/* Reports that the tokens of a COMMIT are handed on; they count as committed from here.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (another action is due); KVT_ERR_INTERNAL (the lengths of the
 * caches do not add up: a defect of the library); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_committed(kvt_verifier_t verifier);

/* Ends the sequence at once: what was committed stays; the next action is DONE. An ended sequence keeps its
 * reason.
 * @return KVT_OK; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_cancel(kvt_verifier_t verifier);

/* Copies the counts so far.
 * @param stats  out; struct_size set by the caller.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (stats is NULL or of a wrong size); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE.
 * Threads: any; calls on one verifier are made one after another. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_verifier_stats(kvt_verifier_t verifier, kvt_verifier_stats_t* stats);

/* Classifies a start-up probe. The host decodes the same tokens one by one and inside batches of several
 * widths and row places, and reports each pair of logit rows; the library compares bits.
 * @param alone, batched    rows x vocabulary logits of the same tokens; minus infinity is allowed.
 * @param rows, vocabulary  at least 2 rows of at least 1 logit.
 * @param widths            for each row the width of its batch.
 * @param places            its row in that batch, from 0.
 * @param level   out, KVT_FIDELITY_*. C: all rows are bitwise equal. B: not C, but the argmax is equal in all
 *                rows and the differences are finite. A: not B, but a token has the same bits at every place
 * of batches of one width (the same token is known by equal rows in `alone`; the probe must hold it at two
 * places or more). N: else.
 * @param margin  out: twice the largest difference seen, the margin for level B; 0 at level C.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (a NULL pointer, fewer than two rows, a place outside of its
 * width, or a NaN; the field and index are named); KVT_ERR_OUT_OF_MEMORY. Threads: any. Blocks: no. Since:
 * 0.1. */
KVT_API kvt_status_t kvt_fidelity_classify(const float* alone, const float* batched, size_t rows,
                                           size_t vocabulary, const uint32_t* widths, const uint32_t* places,
                                           int32_t* level, float* margin);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_VERIFIER_H_ */
