/* A toy engine drives the verifier as the header says: the output equals that of the full cache, whatever the
 * draft. */
#include "kit.h"

enum { VOCABULARY = 50, MAX_OUT = 400 };

/* The full cache's next token is a function of the position and the token before; the draft errs at every
 * `error_every`-th position. */
static int32_t FullNext(uint64_t position, int32_t token) {
  return (int32_t)((position * 31u + (uint64_t)token * 17u + 5u) % (VOCABULARY - 1)) + 1;
}

static int32_t DraftNext(uint64_t position, int32_t token, uint64_t error_every) {
  const int32_t right = FullNext(position, token);
  return error_every != 0 && position % error_every == 0 ? right % (VOCABULARY - 1) + 1 : right;
}

typedef struct run {
  int32_t out[MAX_OUT];
  size_t count;
  int32_t reason;
  uint64_t draft_len, full_len; /* what both caches hold */
  uint64_t full_forwards;
} run_t;

static void Drive(const kvt_verifier_options_t* options, uint64_t error_every, run_t* run) {
  kvt_verifier_t verifier = 0;
  memset(run, 0, sizeof *run);
  run->draft_len = run->full_len = options->prompt_tokens;
  run->out[run->count++] = options->first_token; /* handed to the user by the host */
  CHECK_OK(kvt_verifier_create(options, &verifier));
  for (int steps = 0; steps < 20 * MAX_OUT; ++steps) {
    kvt_action_t action;
    action.struct_size = sizeof action;
    if (kvt_verifier_next(verifier, &action) != KVT_OK) break;
    int32_t tokens[KVT_VERIFIER_MAX_DRAFT + 1];
    if (action.kind == KVT_ACTION_DRAFT) {
      CHECK(action.draft_length == run->draft_len);
      CHECK(action.width >= 1 && action.tokens[action.width - 1] == action.pending);
      run->draft_len += action.width; /* decodes what the draft cache lacks, pending last */
      int32_t token = action.pending;
      for (uint32_t i = 0; i < action.n; ++i) {
        token = tokens[i] = DraftNext(run->draft_len - 1 + i, token, error_every);
      }
      run->draft_len += action.n - 1; /* the last drafted token is not decoded */
      CHECK_OK(kvt_verifier_drafted(verifier, tokens, action.n, 10));
    } else if (action.kind == KVT_ACTION_PREFETCH) {
      CHECK_OK(kvt_verifier_loaded(verifier, KVT_OK, 10));
    } else if (action.kind == KVT_ACTION_VERIFY || action.kind == KVT_ACTION_FALLBACK) {
      const uint32_t rows = action.kind == KVT_ACTION_VERIFY ? action.n + 1 : 1;
      float gaps[KVT_VERIFIER_MAX_DRAFT + 1];
      CHECK(action.full_length == run->full_len && action.tokens[0] == action.pending);
      ++run->full_forwards;
      for (uint32_t i = 0; i < rows; ++i) {
        tokens[i] = FullNext(run->full_len++, action.tokens[i]);
        gaps[i] = 1.0f;
      }
      CHECK_OK(kvt_verifier_verified(verifier, tokens, gaps, rows, 10));
    } else if (action.kind == KVT_ACTION_ROLLBACK) {
      CHECK(action.full_length <= run->full_len && action.draft_length <= run->draft_len);
      run->full_len = action.full_length;
      run->draft_len = action.draft_length;
      CHECK_OK(kvt_verifier_rolled_back(verifier));
    } else if (action.kind == KVT_ACTION_COMMIT) {
      for (uint32_t i = 0; i < action.n && run->count < MAX_OUT; ++i)
        run->out[run->count++] = action.tokens[i];
      CHECK_OK(kvt_verifier_committed(verifier));
    } else {
      CHECK(action.kind == KVT_ACTION_DONE);
      run->reason = action.reason;
      break;
    }
  }
  kvt_verifier_destroy(verifier);
}

static void CheckOutput(const kvt_verifier_options_t* options, const run_t* run) {
  int32_t token = options->first_token;
  uint64_t position = options->prompt_tokens;
  for (size_t i = 0; i < run->count; ++i) {
    if (run->out[i] != token) {
      printf("  token %zu is %d, the full cache says %d\n", i, run->out[i], token);
      CHECK(!"output differs from the full cache");
      return;
    }
    token = FullNext(position++, token);
  }
}

static kvt_verifier_options_t Options(uint32_t draft_length, uint64_t max_tokens) {
  kvt_verifier_options_t options = KitVerifierOptions();
  options.vocabulary = VOCABULARY;
  options.draft_length = draft_length;
  options.max_tokens = max_tokens;
  return options;
}

static void EqualsFullCache(void) {
  static const uint32_t lengths[] = {1, 2, 8, 64, KVT_VERIFIER_MAX_DRAFT, 0};
  static const uint64_t errors[] = {0, 1, 2, 3, 7, 50};
  static run_t run;
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) {
      const kvt_verifier_options_t options = Options(lengths[i], 300);
      Drive(&options, errors[j], &run);
      CHECK(run.count == 300 && run.reason == KVT_REASON_LENGTH);
      CheckOutput(&options, &run);
    }
}

static void SavesForwards(void) {
  static run_t run;
  const kvt_verifier_options_t options = Options(8, 300);
  Drive(&options, 0, &run);
  CHECK(run.full_forwards <= 300 / 9 + 2);
}

static void LengthLimits(void) {
  static run_t run;
  for (uint64_t limit = 1; limit < 25; ++limit) {
    const kvt_verifier_options_t options = Options(8, limit);
    Drive(&options, 5, &run);
    CHECK(run.count == limit && run.reason == KVT_REASON_LENGTH);
    CheckOutput(&options, &run);
  }
}

static void EosInsideDraft(void) {
  static run_t run, cut;
  kvt_verifier_options_t options = Options(8, 200);
  Drive(&options, 5, &run);
  for (size_t end = 1; end < 40; ++end) {
    const int32_t eos = run.out[end];
    size_t first = 0;
    while (run.out[first] != eos) ++first;
    options.eos = &eos;
    options.eos_count = 1;
    Drive(&options, 5, &cut);
    CHECK(cut.reason == KVT_REASON_EOS && cut.count == first + 1);
    CHECK(memcmp(cut.out, run.out, (first + 1) * sizeof eos) == 0);
  }
}

static void PrefetchFirst(void) {
  static run_t run;
  kvt_verifier_options_t options = Options(8, 50);
  options.full_ready = 0;
  Drive(&options, 4, &run);
  CHECK(run.count == 50);
  CheckOutput(&options, &run);
}

static void Cancel(void) {
  const kvt_verifier_options_t options = Options(8, 50);
  kvt_verifier_t verifier = 0;
  kvt_action_t action;
  action.struct_size = sizeof action;
  CHECK_OK(kvt_verifier_create(&options, &verifier));
  CHECK_OK(kvt_verifier_cancel(verifier));
  CHECK_OK(kvt_verifier_next(verifier, &action));
  CHECK(action.kind == KVT_ACTION_DONE && action.reason == KVT_REASON_CANCELLED);
  kvt_verifier_destroy(verifier);
}

static void Levels(void) {
  const float alone[6] = {1, 2, 3, 4, 6, 5}, near[6] = {1, 2, 3.25f, 4, 6, 5}, far[6] = {3, 2, 1, 4, 6, 5};
  const uint32_t widths[2] = {4, 8}, places[2] = {0, 3};
  int32_t level = -1;
  float margin = -1;
  CHECK_OK(kvt_fidelity_classify(alone, alone, 2, 3, widths, places, &level, &margin));
  CHECK(level == KVT_FIDELITY_C && margin == 0);
  CHECK_OK(kvt_fidelity_classify(alone, near, 2, 3, widths, places, &level, &margin));
  CHECK(level == KVT_FIDELITY_B && margin == 0.5f);
  CHECK_OK(kvt_fidelity_classify(alone, far, 2, 3, widths, places, &level, &margin));
  CHECK(level != KVT_FIDELITY_C && level != KVT_FIDELITY_B);
}

int main(void) {
  RUN(EqualsFullCache);
  RUN(SavesForwards);
  RUN(LengthLimits);
  RUN(EosInsideDraft);
  RUN(PrefetchFirst);
  RUN(Cancel);
  RUN(Levels);
  return Finish();
}
