#include "kvartet/generate.h"

#include <algorithm>

#include "engine/probe.h"
#include "kvartet/clock.h"

namespace kvt::cli {
namespace {

constexpr size_t kProgressEvery = 16;

class VerifiedLoop {
 public:
  VerifiedLoop(engine::Session* full, engine::Session* draft, std::span<const int32_t> prompt)
      : full_(full), draft_(draft), sequence_(prompt.begin(), prompt.end()), prompt_tokens_(prompt.size()) {}

  VerifiedRun Run(const kvt_verifier_options_t& options, const TokensSoFar& progress) {
    Check(kvt_verifier_create(&options, verifier_.out()), "kvt_verifier_create");
    sequence_.push_back(options.first_token);
    kvt_action_t action = {};
    action.struct_size = sizeof action;
    size_t reported = 0;
    for (;;) {
      Check(kvt_verifier_next(verifier_.get(), &action), "kvt_verifier_next");
      if (action.kind == KVT_ACTION_DONE) break;
      Carry(action);
      const size_t generated = sequence_.size() - prompt_tokens_;
      if (generated >= reported + kProgressEvery) progress(reported = generated);
    }
    VerifiedRun run;
    run.tokens.assign(sequence_.begin() + static_cast<ptrdiff_t>(prompt_tokens_), sequence_.end());
    run.stats = {};
    run.stats.struct_size = sizeof run.stats;
    Check(kvt_verifier_stats(verifier_.get(), &run.stats), "kvt_verifier_stats");
    return run;
  }

 private:
  void Carry(const kvt_action_t& action) {
    switch (action.kind) {
      case KVT_ACTION_DRAFT:
        return Draft(action);
      case KVT_ACTION_VERIFY:
      case KVT_ACTION_FALLBACK:
        return Verify(action);
      case KVT_ACTION_RECHECK:
        return Recheck(action);
      case KVT_ACTION_ROLLBACK:
        Take(draft_->Truncate(static_cast<int32_t>(action.draft_length)), "truncate");
        Take(full_->Truncate(static_cast<int32_t>(action.full_length)), "truncate");
        return Check(kvt_verifier_rolled_back(verifier_.get()), "kvt_verifier_rolled_back");
      case KVT_ACTION_COMMIT:
        sequence_.insert(sequence_.end(), action.tokens, action.tokens + action.n);
        return Check(kvt_verifier_committed(verifier_.get()), "kvt_verifier_committed");
      default:
        throw Failure("the verifier asked for action " + std::to_string(action.kind) +
                      ", which the demo does not expect");
    }
  }

  void Draft(const kvt_action_t& action) {
    const Clock clock;
    int32_t token = 0;
    for (uint32_t i = 0; i < action.width; ++i)
      token = Take(draft_->DecodeOne(action.tokens[i]), "draft").token;
    std::vector<int32_t> tokens = {token};
    while (tokens.size() < action.n) tokens.push_back(Take(draft_->DecodeOne(tokens.back()), "draft").token);
    Check(kvt_verifier_drafted(verifier_.get(), tokens.data(), tokens.size(), clock.Nanoseconds() / 1000),
          "kvt_verifier_drafted");
  }

  // VERIFY and FALLBACK: pending and the draft in one batch, padded to the width that level A asks for.
  void Verify(const kvt_action_t& action) {
    const Clock clock;
    const size_t count = action.kind == KVT_ACTION_VERIFY ? action.n + 1 : 1;
    std::vector<int32_t> rows(action.tokens, action.tokens + count);
    rows.resize(std::max<size_t>(count, action.width), rows.back());
    const std::vector<engine::Choice> choices = Take(full_->DecodeBatch(rows), "verify");
    std::vector<int32_t> tokens;
    std::vector<float> gaps;
    for (size_t i = 0; i < count; ++i) {
      tokens.push_back(choices[i].token);
      gaps.push_back(choices[i].gap);
    }
    Check(
        kvt_verifier_verified(verifier_.get(), tokens.data(), gaps.data(), count, clock.Nanoseconds() / 1000),
        "kvt_verifier_verified");
  }

  void Recheck(const kvt_action_t& action) {
    const Clock clock;
    Take(full_->Truncate(static_cast<int32_t>(action.full_length)), "truncate");
    const engine::Choice choice = Take(full_->DecodeOne(action.tokens[action.n]), "recheck");
    Check(kvt_verifier_rechecked(verifier_.get(), choice.token, clock.Nanoseconds() / 1000),
          "kvt_verifier_rechecked");
  }

  engine::Session* const full_;
  engine::Session* const draft_;
  std::vector<int32_t> sequence_;  // prompt and committed tokens
  const size_t prompt_tokens_;
  Verifier verifier_;
};

}  // namespace

std::vector<int32_t> GeneratePlain(engine::Session* session, int32_t first, int32_t count,
                                   const TokensSoFar& progress) {
  std::vector<int32_t> tokens = {first};
  while (tokens.size() < static_cast<size_t>(count)) {
    tokens.push_back(Take(session->DecodeOne(tokens.back()), "decode").token);
    if (tokens.size() % kProgressEvery == 0) progress(tokens.size());
  }
  return tokens;
}

VerifiedRun GenerateVerified(engine::Session* full, engine::Session* draft, std::span<const int32_t> prompt,
                             int32_t first, int32_t count, int32_t draft_length, int32_t vocabulary,
                             Fidelity fidelity, const TokensSoFar& progress) {
  kvt_verifier_options_t options;
  kvt_verifier_options_init(&options, sizeof options);
  options.draft_length = static_cast<uint32_t>(draft_length);
  options.fidelity = fidelity.level;
  options.margin = fidelity.margin;
  if (fidelity.level == KVT_FIDELITY_A) options.width = static_cast<uint32_t>(draft_length) + 1;
  options.first_token = first;
  options.vocabulary = static_cast<uint32_t>(vocabulary);
  options.prompt_tokens = prompt.size();
  options.max_tokens = static_cast<uint64_t>(count);
  options.full_ready = 1;
  return VerifiedLoop(full, draft, prompt).Run(options, progress);
}

Fidelity ProbeFidelity(const engine::Engine& engine, int32_t threads, int32_t draft_length) {
  engine::ProbeOptions options;
  options.session.threads = threads;
  options.widths = {2, draft_length + 1};
  const engine::ProbeRows rows = Take(engine::Probe(engine, options), "probe");
  Fidelity fidelity;
  Check(kvt_fidelity_classify(rows.alone.data(), rows.batched.data(), rows.rows(), rows.vocabulary,
                              rows.widths.data(), rows.places.data(), &fidelity.level, &fidelity.margin),
        "kvt_fidelity_classify");
  return fidelity;
}

}  // namespace kvt::cli
