// A toy engine for the verifier: a full model and a perturbed draft model, both functions of the token
// prefix, with caches kept as tokens so that a wrong length or a wrong token in a cache changes what comes
// out.
#ifndef KVARTET_TESTS_UNIT_VERIFY_SIMULATED_ENGINE_H_
#define KVARTET_TESTS_UNIT_VERIFY_SIMULATED_ENGINE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "kvartet/verifier.h"

namespace kvt_test {

using Tokens = std::vector<int32_t>;

inline uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

struct Toy {
  uint64_t seed = 1;
  int32_t vocabulary = 50;
  double noise = 0;  // probability that the draft model's token is another one
  double soft = 0;   // probability that a position's gap is small and a batch flips its argmax
  Tokens eos;

  static uint64_t Hash(uint64_t seed, const int32_t* prefix, size_t size) {
    uint64_t h = Mix(seed + size);
    for (size_t i = 0; i < size; ++i) h = Mix(h ^ static_cast<uint64_t>(prefix[i]) * 0x9e3779b97f4a7c15ull);
    return h;
  }
  static bool Chance(uint64_t h, double p) { return static_cast<double>(h >> 11) * 0x1p-53 < p; }

  // The token after the first `size` of `prefix`.
  int32_t Full(const Tokens& prefix, size_t size) const {
    return static_cast<int32_t>(Hash(seed, prefix.data(), size) % static_cast<uint64_t>(vocabulary));
  }
  int32_t Draft(const Tokens& prefix, size_t size) const {
    const int32_t token = Full(prefix, size);
    const uint64_t h = Hash(seed ^ 0xd1aff, prefix.data(), size);
    return Chance(h, noise) ? (token + 1 + static_cast<int32_t>(Mix(h) % (vocabulary - 1))) % vocabulary
                            : token;
  }
  bool Soft(const Tokens& prefix, size_t size) const {
    return Chance(Hash(seed ^ 0x50f7, prefix.data(), size), soft);
  }

  // What decoding one by one on the full cache gives, `first` included.
  Tokens Reference(Tokens prompt, int32_t first, size_t most) const {
    Tokens out = {first};
    prompt.push_back(first);
    while (out.size() < most && std::count(eos.begin(), eos.end(), out.back()) == 0) {
      out.push_back(Full(prompt, prompt.size()));
      prompt.push_back(out.back());
    }
    return out;
  }
};

// Carries out the actions of one verifier. Every cache access is checked.
class Host {
 public:
  Host(const Toy& toy, Tokens prompt, kvt_verifier_options_t options)
      : toy_(toy), options_(options), full_(prompt), draft_(prompt), truth_(prompt) {
    options_.prompt_tokens = prompt.size();
    options_.vocabulary = static_cast<uint32_t>(toy_.vocabulary);
    options_.first_token = toy_.Full(prompt, prompt.size());
    options_.eos = toy_.eos.data();
    options_.eos_count = toy_.eos.size();
    full_there_ = options_.full_ready != 0;
    out_ = {options_.first_token};
    truth_.push_back(options_.first_token);
    EXPECT_EQ(kvt_verifier_create(&options_, &verifier_), KVT_OK);
  }
  ~Host() { kvt_verifier_destroy(verifier_); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  kvt_verifier_t verifier() const { return verifier_; }
  const Tokens& out() const { return out_; }
  const Tokens& full() const { return full_; }
  const Tokens& draft() const { return draft_; }
  const kvt_verifier_options_t& options() const { return options_; }
  size_t loads() const { return loads_; }

  kvt_action_t Next() {
    kvt_action_t action = {};
    action.struct_size = sizeof action;
    EXPECT_EQ(kvt_verifier_next(verifier_, &action), KVT_OK);
    return action;
  }

  kvt_verifier_stats_t Stats() {
    kvt_verifier_stats_t stats = {};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(kvt_verifier_stats(verifier_, &stats), KVT_OK);
    return stats;
  }

  // Times that a step reports, in microseconds.
  uint64_t draft_us = 10, verify_us = 100, row_us = 1, load_us = 0;
  std::function<size_t(size_t)> stop_early;  // how many of n tokens the host drafts

  // Carries out one action and returns it.
  kvt_action_t Step() {
    const kvt_action_t action = Next();
    switch (action.kind) {
      case KVT_ACTION_DRAFT:
        DoDraft(action);
        break;
      case KVT_ACTION_PREFETCH:
        EXPECT_FALSE(full_there_);
        full_there_ = true;
        ++loads_;
        EXPECT_EQ(action.full_length, full_.size());
        EXPECT_EQ(kvt_verifier_loaded(verifier_, KVT_OK, load_us), KVT_OK);
        break;
      case KVT_ACTION_VERIFY:
      case KVT_ACTION_FALLBACK:
        DoVerify(action);
        break;
      case KVT_ACTION_RECHECK:
        DoRecheck(action);
        break;
      case KVT_ACTION_ROLLBACK:
        CheckTruncates(action.draft_length, draft_.size());
        CheckTruncates(action.full_length, full_.size());
        draft_.resize(action.draft_length);
        full_.resize(action.full_length);
        EXPECT_EQ(kvt_verifier_rolled_back(verifier_), KVT_OK);
        break;
      case KVT_ACTION_COMMIT:
        DoCommit(action);
        break;
      default:
        EXPECT_EQ(action.kind, KVT_ACTION_DONE);
    }
    return action;
  }

  // Until DONE; returns the last action.
  kvt_action_t Run() {
    for (uint64_t steps = 0; steps < 40 * options_.max_tokens + 100; ++steps) {
      const kvt_action_t action = Step();
      if (action.kind == KVT_ACTION_DONE || ::testing::Test::HasFatalFailure()) return action;
    }
    ADD_FAILURE() << "the sequence does not end";
    return {};
  }

 private:
  static void CheckTruncates(uint64_t a, uint64_t b) {
    EXPECT_LE(a, b) << "a cache cannot be made longer by truncating";
  }

  void DoDraft(const kvt_action_t& action) {
    EXPECT_EQ(action.draft_length, draft_.size());
    EXPECT_GE(action.n, 1u);
    EXPECT_EQ(action.tokens[action.width - 1], action.pending);
    draft_.insert(draft_.end(), action.tokens, action.tokens + action.width);
    // The draft cache now holds what is committed, the pending token included, and nothing else.
    EXPECT_EQ(draft_, truth_);
    size_t n = action.n;
    if (stop_early) n = stop_early(n);
    Tokens drafted;
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) draft_.push_back(drafted.back());
      drafted.push_back(toy_.Draft(draft_, draft_.size()));
    }
    EXPECT_EQ(kvt_verifier_drafted(verifier_, drafted.data(), n, draft_us * n), KVT_OK);
  }

  void DoVerify(const kvt_action_t& action) {
    EXPECT_TRUE(full_there_);
    EXPECT_EQ(action.full_length, full_.size());
    EXPECT_EQ(action.tokens[0], action.pending);
    EXPECT_GE(action.width, action.n + 1);
    EXPECT_EQ(full_.size() + 1, truth_.size());
    const bool alone = action.kind == KVT_ACTION_FALLBACK;
    if (options_.fidelity == KVT_FIDELITY_A) {
      EXPECT_EQ(action.width, options_.width);
    }
    Tokens rows;
    std::vector<float> gaps;
    for (size_t i = 0; i <= action.n; ++i) {
      full_.push_back(action.tokens[i]);
      const bool soft = !alone && toy_.Soft(full_, full_.size());
      const int32_t token = toy_.Full(full_, full_.size());
      rows.push_back(soft ? (token + 1) % toy_.vocabulary : token);
      gaps.push_back(soft ? 0.01f : 2.0f);
    }
    // Padding leaves rows in the cache, which the rollback has to take away.
    full_.resize(full_.size() + action.width - action.n - 1, -1);
    EXPECT_EQ(kvt_verifier_verified(verifier_, rows.data(),
                                    options_.fidelity == KVT_FIDELITY_B ? gaps.data() : nullptr, rows.size(),
                                    verify_us + row_us * action.n),
              KVT_OK);
  }

  void DoRecheck(const kvt_action_t& action) {
    EXPECT_LE(action.full_length, full_.size());
    full_.resize(action.full_length);
    full_.push_back(action.tokens[action.n]);
    EXPECT_EQ(kvt_verifier_rechecked(verifier_, toy_.Full(full_, full_.size()), verify_us), KVT_OK);
  }

  void DoCommit(const kvt_action_t& action) {
    EXPECT_GE(action.n, 1u);
    out_.insert(out_.end(), action.tokens, action.tokens + action.n);
    truth_.insert(truth_.end(), action.tokens, action.tokens + action.n);
    EXPECT_EQ(full_.size() + 1, truth_.size());
    EXPECT_EQ(full_, Tokens(truth_.begin(), truth_.end() - 1));
    EXPECT_LE(draft_.size(), full_.size());
    EXPECT_EQ(draft_, Tokens(truth_.begin(), truth_.begin() + static_cast<ptrdiff_t>(draft_.size())));
    if (options_.full_reload != 0) full_there_ = false;
    EXPECT_EQ(kvt_verifier_committed(verifier_), KVT_OK);
  }

  const Toy toy_;
  kvt_verifier_options_t options_;
  kvt_verifier_t verifier_ = 0;
  Tokens full_, draft_;  // what the caches hold
  Tokens truth_;         // prompt and committed tokens
  Tokens out_;
  bool full_there_ = false;
  size_t loads_ = 0;
};

inline kvt_verifier_options_t Options(uint32_t draft_length, uint64_t max_tokens) {
  kvt_verifier_options_t options;
  kvt_verifier_options_init(&options, sizeof options);
  options.draft_length = draft_length;
  options.max_tokens = max_tokens;
  options.full_ready = 1;
  return options;
}

}  // namespace kvt_test

#endif  // KVARTET_TESTS_UNIT_VERIFY_SIMULATED_ENGINE_H_
