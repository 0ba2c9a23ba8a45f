// The action protocol by hand: places of the first mismatch, ends of sequence, and reports that are refused.
#include <cmath>
#include <limits>
#include <string>

#include "kvartet/runtime.h"
#include "unit/verify/simulated_engine.h"

namespace kvt_test {
namespace {

constexpr uint64_t kPromptTokens = 100;

// A verifier with prompt 100, first token 10, vocabulary 50, ready.
class Protocol : public ::testing::Test {
 protected:
  void Open(kvt_verifier_options_t options) {
    options.prompt_tokens = kPromptTokens;
    options.vocabulary = 50;
    options.first_token = 10;
    ASSERT_EQ(kvt_verifier_create(&options, &verifier_), KVT_OK);
  }
  ~Protocol() override { kvt_verifier_destroy(verifier_); }

  kvt_action_t Next() {
    kvt_action_t action = {};
    action.struct_size = sizeof action;
    EXPECT_EQ(kvt_verifier_next(verifier_, &action), KVT_OK);
    return action;
  }
  kvt_status_t Draft(const Tokens& tokens) {
    return kvt_verifier_drafted(verifier_, tokens.data(), tokens.size(), 1);
  }
  kvt_status_t Verify(const Tokens& tokens, const float* gaps = nullptr) {
    return kvt_verifier_verified(verifier_, tokens.data(), gaps, tokens.size(), 1);
  }
  // Rolls back and commits; checks the lengths and returns the tokens.
  Tokens Settle(uint64_t draft_length, uint64_t full_length) {
    const kvt_action_t rollback = Next();
    EXPECT_EQ(rollback.kind, KVT_ACTION_ROLLBACK);
    EXPECT_EQ(rollback.draft_length, draft_length);
    EXPECT_EQ(rollback.full_length, full_length);
    EXPECT_EQ(kvt_verifier_rolled_back(verifier_), KVT_OK);
    const kvt_action_t commit = Next();
    EXPECT_EQ(commit.kind, KVT_ACTION_COMMIT);
    EXPECT_EQ(kvt_verifier_committed(verifier_), KVT_OK);
    return Tokens(commit.tokens, commit.tokens + commit.n);
  }
  static std::string ErrorText() {
    char text[KVT_ERROR_TEXT_MAX];
    size_t size = 0;
    EXPECT_EQ(kvt_last_error(text, sizeof text, &size), KVT_OK);
    return std::string(text, size);
  }

  kvt_verifier_t verifier_ = 0;
};

TEST_F(Protocol, MismatchAtTheFirstToken) {
  Open(Options(4, 100));
  ASSERT_EQ(Draft({1, 2, 3, 4}), KVT_OK);
  ASSERT_EQ(Verify({9, 8, 7, 6, 5}), KVT_OK);
  EXPECT_EQ(Settle(101, 101), (Tokens{9}));
  const kvt_action_t draft = Next();
  EXPECT_EQ(draft.kind, KVT_ACTION_DRAFT);
  EXPECT_EQ(draft.pending, 9);
  EXPECT_EQ(draft.width, 1u);
  EXPECT_EQ(draft.draft_length, 101u);
}

TEST_F(Protocol, MismatchInTheMiddle) {
  Open(Options(4, 100));
  ASSERT_EQ(Draft({1, 2, 3, 4}), KVT_OK);
  ASSERT_EQ(Verify({1, 2, 7, 4, 5}), KVT_OK);
  EXPECT_EQ(Settle(103, 103), (Tokens{1, 2, 7}));
}

TEST_F(Protocol, MismatchAtTheLastToken) {
  Open(Options(4, 100));
  ASSERT_EQ(Draft({1, 2, 3, 4}), KVT_OK);
  ASSERT_EQ(Verify({1, 2, 3, 7, 5}), KVT_OK);
  EXPECT_EQ(Settle(104, 104), (Tokens{1, 2, 3, 7}));
}

TEST_F(Protocol, AllAcceptedGivesOneMoreAndADraftCacheThatLacksOne) {
  Open(Options(4, 100));
  ASSERT_EQ(Draft({1, 2, 3, 4}), KVT_OK);
  const kvt_action_t verify = Next();
  EXPECT_EQ(verify.kind, KVT_ACTION_VERIFY);
  EXPECT_EQ(Tokens(verify.tokens, verify.tokens + verify.width), (Tokens{10, 1, 2, 3, 4}));
  ASSERT_EQ(Verify({1, 2, 3, 4, 5}), KVT_OK);
  EXPECT_EQ(Settle(104, 105), (Tokens{1, 2, 3, 4, 5}));
  const kvt_action_t draft = Next();
  EXPECT_EQ(draft.draft_length, 104u);
  EXPECT_EQ(Tokens(draft.tokens, draft.tokens + draft.width), (Tokens{4, 5}));
  EXPECT_EQ(draft.n, 4u);
}

TEST_F(Protocol, EndDraftedButNotVerifiedGoesOn) {
  kvt_verifier_options_t options = Options(4, 100);
  const int32_t eos = 2;
  options.eos = &eos;
  options.eos_count = 1;
  Open(options);
  ASSERT_EQ(Draft({1, 2, 3, 4}), KVT_OK);
  EXPECT_EQ(Next().n, 2u);  // what follows the drafted end is not verified
  ASSERT_EQ(Verify({1, 7, 3}), KVT_OK);
  EXPECT_EQ(Settle(102, 102), (Tokens{1, 7}));
  EXPECT_EQ(Next().kind, KVT_ACTION_DRAFT);
}

TEST_F(Protocol, EndVerifiedButNotDraftedEnds) {
  kvt_verifier_options_t options = Options(4, 100);
  const int32_t eos = 2;
  options.eos = &eos;
  options.eos_count = 1;
  Open(options);
  ASSERT_EQ(Draft({1, 3, 4, 5}), KVT_OK);
  ASSERT_EQ(Verify({1, 2, 4, 5, 6}), KVT_OK);
  EXPECT_EQ(Settle(102, 102), (Tokens{1, 2}));
  EXPECT_EQ(Next().kind, KVT_ACTION_DONE);
  EXPECT_EQ(Next().reason, KVT_REASON_EOS);
}

TEST_F(Protocol, EndDraftedAndVerifiedCommitsNothingBehindIt) {
  kvt_verifier_options_t options = Options(4, 100);
  const int32_t eos = 2;
  options.eos = &eos;
  options.eos_count = 1;
  Open(options);
  ASSERT_EQ(Draft({1, 2}), KVT_OK);
  ASSERT_EQ(Verify({1, 2, 30}), KVT_OK);
  EXPECT_EQ(Settle(102, 102), (Tokens{1, 2}));
  EXPECT_EQ(Next().reason, KVT_REASON_EOS);
}

TEST_F(Protocol, DraftIsCutToTheBudget) {
  Open(Options(8, 4));  // the first token is one of the four
  EXPECT_EQ(Next().n, 2u);
  ASSERT_EQ(Draft({1, 2}), KVT_OK);
  ASSERT_EQ(Verify({1, 2, 3}), KVT_OK);
  EXPECT_EQ(Settle(102, 103), (Tokens{1, 2, 3}));
  EXPECT_EQ(Next().reason, KVT_REASON_LENGTH);
}

TEST_F(Protocol, RecheckEndsTheRoundAtItsRow) {
  kvt_verifier_options_t options = Options(4, 100);
  options.fidelity = KVT_FIDELITY_B;
  options.margin = 0.5f;
  Open(options);
  ASSERT_EQ(Draft({1, 2, 3, 4}), KVT_OK);
  const float gaps[] = {1, 1, 0.5f, 1, 1};
  ASSERT_EQ(Verify({1, 2, 3, 4, 5}, gaps), KVT_OK);
  const kvt_action_t recheck = Next();
  EXPECT_EQ(recheck.kind, KVT_ACTION_RECHECK);
  EXPECT_EQ(recheck.n, 2u);
  EXPECT_EQ(recheck.tokens[recheck.n], 2);
  EXPECT_EQ(recheck.full_length, 102u);
  EXPECT_EQ(kvt_verifier_rechecked(verifier_, 50, 1), KVT_ERR_INVALID_ARGUMENT);
  ASSERT_EQ(kvt_verifier_rechecked(verifier_, 3, 1), KVT_OK);
  EXPECT_EQ(Settle(103, 103), (Tokens{1, 2, 3}));
}

TEST_F(Protocol, RecheckMayOverturnTheBatch) {
  kvt_verifier_options_t options = Options(2, 100);
  options.fidelity = KVT_FIDELITY_B;
  options.margin = 0.5f;
  Open(options);
  ASSERT_EQ(Draft({1, 2}), KVT_OK);
  const float gaps[] = {0, 1, 1};
  ASSERT_EQ(Verify({1, 2, 3}, gaps), KVT_OK);
  ASSERT_EQ(kvt_verifier_rechecked(verifier_, 6, 1), KVT_OK);
  EXPECT_EQ(Settle(101, 101), (Tokens{6}));
}

TEST_F(Protocol, LevelBNeedsGaps) {
  kvt_verifier_options_t options = Options(2, 100);
  options.fidelity = KVT_FIDELITY_B;
  options.margin = 0.5f;
  Open(options);
  ASSERT_EQ(Draft({1, 2}), KVT_OK);
  EXPECT_EQ(Verify({1, 2, 3}), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(ErrorText().find("gaps"), std::string::npos);
  EXPECT_EQ(Next().kind, KVT_ACTION_VERIFY);
}

TEST_F(Protocol, NanGapCommitsNothingAndStaysDue) {
  Open(Options(2, 100));
  ASSERT_EQ(Draft({1, 2}), KVT_OK);
  const float bad[] = {1, std::numeric_limits<float>::quiet_NaN(), 1};
  EXPECT_EQ(Verify({1, 2, 3}, bad), KVT_ERR_CORRUPT);
  EXPECT_NE(ErrorText().find("gaps[1]"), std::string::npos);
  EXPECT_EQ(Next().kind, KVT_ACTION_VERIFY);
  // Beyond the mismatch it is not read.
  const float good[] = {1, 1, std::numeric_limits<float>::quiet_NaN()};
  ASSERT_EQ(Verify({1, 7, 3}, good), KVT_OK);
  EXPECT_EQ(Settle(102, 102), (Tokens{1, 7}));
  kvt_verifier_stats_t stats = {};
  stats.struct_size = sizeof stats;
  ASSERT_EQ(kvt_verifier_stats(verifier_, &stats), KVT_OK);
  EXPECT_EQ(stats.nonfinite, 1u);
  EXPECT_EQ(stats.accepted, 1u);
}

TEST_F(Protocol, BadReportsChangeNothing) {
  Open(Options(2, 100));
  EXPECT_EQ(Draft({1, 2, 3}), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(ErrorText().find("count is 3"), std::string::npos);
  EXPECT_EQ(Draft({1, 50}), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(ErrorText().find("tokens[1] is 50"), std::string::npos);
  EXPECT_EQ(Draft({-1}), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_verifier_drafted(verifier_, nullptr, 1, 0), KVT_ERR_INVALID_ARGUMENT);
  ASSERT_EQ(Draft({1, 2}), KVT_OK);
  EXPECT_EQ(Verify({1, 2, 3, 4}), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(Verify({1, 2}), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(Verify({1, 99, 3}), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_verifier_verified(verifier_, nullptr, nullptr, 3, 0), KVT_ERR_INVALID_ARGUMENT);
  const float negative[] = {1, -1, 1};
  EXPECT_EQ(Verify({1, 2, 3}, negative), KVT_ERR_INVALID_ARGUMENT);
  ASSERT_EQ(Verify({1, 2, 3}), KVT_OK);
  EXPECT_EQ(Settle(102, 103), (Tokens{1, 2, 3}));
}

TEST_F(Protocol, EveryWrongReportInEveryStateIsRefused) {
  kvt_verifier_options_t options = Options(1, 100);
  options.fidelity = KVT_FIDELITY_B;
  options.margin = 0.5f;
  options.full_ready = 0;
  Open(options);
  const int32_t token = 1;
  const float gap[] = {1, 1};
  const auto refuses_all_but = [&](int32_t due) {
    EXPECT_EQ(Next().kind, due);
    if (due != KVT_ACTION_DRAFT) {
      EXPECT_EQ(kvt_verifier_drafted(verifier_, &token, 1, 0), KVT_ERR_INVALID_ARGUMENT);
    }
    if (due != KVT_ACTION_PREFETCH) {
      EXPECT_EQ(kvt_verifier_loaded(verifier_, KVT_OK, 0), KVT_ERR_INVALID_ARGUMENT);
    }
    if (due != KVT_ACTION_VERIFY) {
      EXPECT_EQ(kvt_verifier_verified(verifier_, &token, gap, 1, 0), KVT_ERR_INVALID_ARGUMENT);
    }
    if (due != KVT_ACTION_RECHECK) {
      EXPECT_EQ(kvt_verifier_rechecked(verifier_, token, 0), KVT_ERR_INVALID_ARGUMENT);
    }
    if (due != KVT_ACTION_ROLLBACK) {
      EXPECT_EQ(kvt_verifier_rolled_back(verifier_), KVT_ERR_INVALID_ARGUMENT);
    }
    if (due != KVT_ACTION_COMMIT) {
      EXPECT_EQ(kvt_verifier_committed(verifier_), KVT_ERR_INVALID_ARGUMENT);
      EXPECT_NE(ErrorText().find("the action due is"), std::string::npos);
    }
    EXPECT_EQ(Next().kind, due);
  };
  refuses_all_but(KVT_ACTION_DRAFT);
  ASSERT_EQ(Draft({1}), KVT_OK);
  refuses_all_but(KVT_ACTION_PREFETCH);
  EXPECT_EQ(kvt_verifier_loaded(verifier_, 1, 0), KVT_ERR_INVALID_ARGUMENT);
  ASSERT_EQ(kvt_verifier_loaded(verifier_, KVT_OK, 0), KVT_OK);
  refuses_all_but(KVT_ACTION_VERIFY);
  const float soft[] = {0, 1};
  ASSERT_EQ(Verify({1, 2}, soft), KVT_OK);
  refuses_all_but(KVT_ACTION_RECHECK);
  ASSERT_EQ(kvt_verifier_rechecked(verifier_, 1, 0), KVT_OK);
  refuses_all_but(KVT_ACTION_ROLLBACK);
  ASSERT_EQ(kvt_verifier_rolled_back(verifier_), KVT_OK);
  refuses_all_but(KVT_ACTION_COMMIT);
  ASSERT_EQ(kvt_verifier_cancel(verifier_), KVT_OK);
  refuses_all_but(KVT_ACTION_DONE);
}

TEST(VerifierCancel, InEveryStateKeepsWhatWasCommitted) {
  const Tokens prompt = {1, 2, 3};
  bool seen[KVT_ACTION_DONE + 1] = {};
  for (int steps = 0; steps < 40; ++steps) {
    Toy toy;
    toy.noise = 0.3;
    toy.soft = 0.2;
    kvt_verifier_options_t options = Options(3, 60);
    options.full_ready = 0;
    options.full_reload = 1;
    options.fidelity = KVT_FIDELITY_B;
    options.margin = 0.05f;
    Host host(toy, prompt, options);
    if (steps % 4 == 3) host.stop_early = [](size_t) { return size_t{0}; };
    for (int i = 0; i < steps; ++i) host.Step();
    seen[host.Next().kind] = true;
    const size_t committed = host.out().size();
    ASSERT_EQ(kvt_verifier_cancel(host.verifier()), KVT_OK);
    EXPECT_EQ(host.Next().kind, KVT_ACTION_DONE);
    EXPECT_EQ(host.Next().reason, KVT_REASON_CANCELLED);
    EXPECT_EQ(host.Stats().committed, committed);
    const Tokens wanted = toy.Reference(prompt, host.options().first_token, 60);
    EXPECT_EQ(host.out(), Tokens(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(committed)));
    EXPECT_EQ(kvt_verifier_cancel(host.verifier()), KVT_OK);
  }
  for (int kind = KVT_ACTION_DRAFT; kind < KVT_ACTION_DONE; ++kind) EXPECT_TRUE(seen[kind]) << kind;
}

TEST(VerifierOptions, EachBadFieldIsNamed) {
  const int32_t eos[] = {1, 50};
  const auto refused = [&](const char* field, const std::function<void(kvt_verifier_options_t*)>& change) {
    kvt_verifier_options_t options = Options(8, 10);
    options.vocabulary = 50;
    change(&options);
    kvt_verifier_t verifier = 77;
    EXPECT_EQ(kvt_verifier_create(&options, &verifier), KVT_ERR_INVALID_ARGUMENT) << field;
    EXPECT_EQ(verifier, 77u);
    char text[KVT_ERROR_TEXT_MAX];
    size_t size = 0;
    kvt_last_error(text, sizeof text, &size);
    EXPECT_NE(std::string(text, size).find(field), std::string::npos) << std::string(text, size);
  };
  refused("struct_size", [](auto* o) { o->struct_size = 8; });
  refused("draft_length", [](auto* o) { o->draft_length = 257; });
  refused("draft_max", [](auto* o) { o->draft_max = 0; });
  refused("draft_max", [](auto* o) { o->draft_max = 257; });
  refused("width", [](auto* o) { o->width = 258; });
  refused("width", [](auto* o) { o->fidelity = KVT_FIDELITY_A, o->width = 8; });
  refused("fidelity", [](auto* o) { o->fidelity = 4; });
  refused("fidelity", [](auto* o) { o->fidelity = -1; });
  refused("margin", [](auto* o) { o->fidelity = KVT_FIDELITY_B; });
  refused("margin", [](auto* o) { o->fidelity = KVT_FIDELITY_B, o->margin = std::nanf(""); });
  refused("vocabulary", [](auto* o) { o->vocabulary = 0; });
  refused("first_token", [](auto* o) { o->first_token = 50; });
  refused("first_token", [](auto* o) { o->first_token = -1; });
  refused("prompt_tokens", [](auto* o) { o->prompt_tokens = ~uint64_t{0}; });
  refused("max_tokens", [](auto* o) { o->max_tokens = 0; });
  refused("max_tokens", [](auto* o) { o->max_tokens = ~uint64_t{0}; });
  refused("eos is NULL", [](auto* o) { o->eos_count = 1; });
  refused("eos_count", [](auto* o) { o->eos_count = 1 << 20; });
  refused("eos[1] is 50", [&](auto* o) { o->eos = eos, o->eos_count = 2; });
  refused("full_ready", [](auto* o) { o->full_ready = 2; });
  refused("full_reload", [](auto* o) { o->full_reload = 2; });
  refused("reserved", [](auto* o) { o->reserved[5] = 1; });
}

TEST(VerifierHandles, StaleForeignAndNull) {
  kvt_runtime_t runtime = 0;
  ASSERT_EQ(kvt_runtime_create(nullptr, &runtime), KVT_OK);
  kvt_action_t action = {};
  action.struct_size = sizeof action;
  EXPECT_EQ(kvt_verifier_next(0, &action), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(kvt_verifier_next(runtime, &action), KVT_ERR_WRONG_HANDLE);
  EXPECT_EQ(kvt_verifier_cancel(runtime), KVT_ERR_WRONG_HANDLE);
  kvt_verifier_options_t options = Options(8, 10);
  options.vocabulary = 50;
  kvt_verifier_t verifier = 0;
  ASSERT_EQ(kvt_verifier_create(&options, &verifier), KVT_OK);
  EXPECT_EQ(kvt_verifier_next(verifier, nullptr), KVT_ERR_INVALID_ARGUMENT);
  action.struct_size = 4;
  EXPECT_EQ(kvt_verifier_next(verifier, &action), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_verifier_stats(verifier, nullptr), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_verifier_create(nullptr, &verifier), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_verifier_create(&options, nullptr), KVT_ERR_INVALID_ARGUMENT);
  kvt_runtime_destroy(verifier);  // of another type: nothing happens
  action.struct_size = sizeof action;
  EXPECT_EQ(kvt_verifier_next(verifier, &action), KVT_OK);
  kvt_verifier_destroy(verifier);
  EXPECT_EQ(kvt_verifier_next(verifier, &action), KVT_ERR_STALE_HANDLE);
  kvt_verifier_destroy(verifier);
  kvt_verifier_destroy(0);
  kvt_runtime_destroy(runtime);
}

}  // namespace
}  // namespace kvt_test
