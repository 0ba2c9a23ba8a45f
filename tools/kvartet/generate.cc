#include "kvartet/generate.h"

#include <algorithm>

#include "engine/probe.h"
#include "kvartet/clock.h"

namespace kvt::cli {
namespace {

constexpr size_t kProgressEvery = 16;

// Brings a session to hold exactly the first `length` of `sequence`: drops a tail, or decodes what it lacks
// (a draft's last token, say).
void Sync(engine::Session* session, std::span<const int32_t> sequence, int32_t length) {
  if (session->Length() > length) Take(session->Truncate(length), "truncate");
  while (session->Length() < length)
    Take(session->DecodeOne(sequence[static_cast<size_t>(session->Length())]), "decode");
}

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
        // The caches hold the committed tokens and perhaps drafted ones behind them; what a cache lacks is
        // decoded before it is used.
        if (draft_->Length() > static_cast<int32_t>(action.draft_length))
          Take(draft_->Truncate(static_cast<int32_t>(action.draft_length)), "truncate");
        if (full_->Length() > static_cast<int32_t>(action.full_length))
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
    Sync(draft_, sequence_, static_cast<int32_t>(sequence_.size()) - 1);
    std::vector<int32_t> tokens;
    int32_t token = action.pending;
    while (tokens.size() < action.n) {
      token = Take(draft_->DecodeOne(token), "draft").token;
      tokens.push_back(token);
    }
    Check(kvt_verifier_drafted(verifier_.get(), tokens.data(), tokens.size(), clock.Nanoseconds() / 1000),
          "kvt_verifier_drafted");
  }

  void Verify(const kvt_action_t& action) {
    const Clock clock;
    Sync(full_, sequence_, static_cast<int32_t>(sequence_.size()) - 1);
    std::vector<int32_t> rows = {action.pending};
    if (action.kind == KVT_ACTION_VERIFY) rows.assign(action.tokens, action.tokens + action.n + 1);
    const size_t count = rows.size();
    // Level A: a fixed width, padded with the last token.
    rows.resize(std::max<size_t>(count, action.kind == KVT_ACTION_VERIFY ? action.width : 1), rows.back());
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
    const int32_t before = static_cast<int32_t>(action.full_length);
    Take(full_->Truncate(before), "truncate");
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
