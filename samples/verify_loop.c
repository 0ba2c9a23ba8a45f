/* Drives the verifier with a toy engine: its draft cache errs at every sixth position, and the output still
 * equals that of the full cache. A real engine replaces Full() and Draft(), and truncates its two caches on
 * ROLLBACK. */
#include "sample.h"

enum { VOCABULARY = 100, PROMPT = 64, OUT = 40 };

static int32_t Full(uint64_t position, int32_t token) {
  return (int32_t)((position * 7 + (uint64_t)token * 13 + 1) % VOCABULARY);
}

static int32_t Draft(uint64_t position, int32_t token) {
  return position % 6 == 0 ? 0 : Full(position, token);
}

int main(void) {
  kvt_verifier_options_t options;
  kvt_verifier_options_init(&options, sizeof options);
  options.fidelity = KVT_FIDELITY_C; /* a real host asks kvt_fidelity_classify() */
  options.first_token = 42;
  options.vocabulary = VOCABULARY;
  options.prompt_tokens = PROMPT;
  options.max_tokens = OUT;
  options.full_ready = 1;
  kvt_verifier_t verifier;
  Check(kvt_verifier_create(&options, &verifier), "verifier");

  int32_t out[OUT], tokens[KVT_VERIFIER_MAX_DRAFT + 1];
  size_t count = 0;
  out[count++] = options.first_token;                   /* from the full cache's prefill: final already */
  uint64_t draft_length = PROMPT, full_length = PROMPT; /* tokens in the two caches */
  kvt_action_t action = {.struct_size = sizeof action};
  for (;;) {
    Check(kvt_verifier_next(verifier, &action), "next");
    if (action.kind == KVT_ACTION_DONE) break;
    if (action.kind == KVT_ACTION_DRAFT) {
      int32_t token = action.pending;
      draft_length +=
          action.width; /* decode action.tokens, what the draft cache lacks: pending is the last */
      for (uint32_t i = 0; i < action.n; ++i) token = tokens[i] = Draft(draft_length - 1 + i, token);
      draft_length += action.n - 1; /* the last drafted token need not be decoded */
      Check(kvt_verifier_drafted(verifier, tokens, action.n, 1), "drafted");
    } else if (action.kind == KVT_ACTION_VERIFY) {
      for (uint32_t i = 0; i <= action.n; ++i) tokens[i] = Full(full_length++, action.tokens[i]);
      Check(kvt_verifier_verified(verifier, tokens, NULL, action.n + 1, 1), "verified");
    } else if (action.kind == KVT_ACTION_FALLBACK) {
      tokens[0] = Full(full_length++, action.pending);
      Check(kvt_verifier_verified(verifier, tokens, NULL, 1, 1), "verified");
    } else if (action.kind == KVT_ACTION_ROLLBACK) {
      draft_length = action.draft_length;
      full_length = action.full_length;
      Check(kvt_verifier_rolled_back(verifier), "rolled back");
    } else if (action.kind == KVT_ACTION_COMMIT) {
      for (uint32_t i = 0; i < action.n && count < OUT; ++i) out[count++] = action.tokens[i];
      Check(kvt_verifier_committed(verifier), "committed");
    }
  }

  int equal = 0;
  int32_t token = options.first_token;
  for (size_t i = 0; i < count; ++i) {
    equal += out[i] == token;
    token = Full(PROMPT + i, token);
  }
  kvt_verifier_stats_t stats = {.struct_size = sizeof stats};
  Check(kvt_verifier_stats(verifier, &stats), "stats");
  printf("%d of %zu tokens equal the full cache's; acceptance %.2f, %.1f accepted a round\n", equal, count,
         stats.acceptance, stats.mean_accepted);
  kvt_verifier_destroy(verifier);
  return equal == OUT ? 0 : 1;
}
