// The verifier through the C ABI, driven by a simulated engine: output identical to the full model's,
// whatever the draft model does.
#include <cmath>
#include <thread>

#include "unit/verify/simulated_engine.h"

namespace kvt_test {
namespace {

const Tokens kPrompt = {3, 1, 4, 1, 5, 9, 2, 6};

class Identical : public ::testing::TestWithParam<double> {};

TEST_P(Identical, ForManySeedsAndDraftLengths) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    for (uint32_t length = 0; length <= 40; ++length) {  // 0: adaptive
      Toy toy;
      toy.seed = seed * 1000 + length;
      toy.noise = GetParam();
      Host host(toy, kPrompt, Options(length, 97));
      const kvt_action_t last = host.Run();
      ASSERT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 97)) << seed << " " << length;
      EXPECT_EQ(last.reason, KVT_REASON_LENGTH);
      const kvt_verifier_stats_t stats = host.Stats();
      EXPECT_EQ(stats.committed, 97u);
      if (GetParam() == 0) {
        EXPECT_EQ(stats.acceptance, 1.0);
      }
      if (GetParam() == 1) {
        EXPECT_EQ(stats.acceptance, 0.0);
      }
      if (GetParam() == 1 && length != 0) {
        EXPECT_EQ(stats.accepted, 0u);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, Identical, ::testing::Values(0.0, 0.02, 0.2, 0.5, 0.9, 1.0));

TEST(Verifier, AcceptsEveryDraftOfAnExactDraftModel) {
  Toy toy;
  Host host(toy, kPrompt, Options(8, 1 + 9 * 10));
  host.Run();
  const kvt_verifier_stats_t stats = host.Stats();
  EXPECT_EQ(stats.rounds, 10u);
  EXPECT_EQ(stats.drafted, 80u);
  EXPECT_EQ(stats.accepted, 80u);
  EXPECT_EQ(stats.fallbacks, 0u);
  EXPECT_EQ(stats.acceptance, 1.0);
  EXPECT_EQ(stats.mean_accepted, 8.0);
}

TEST(Verifier, AcceptanceIsConditionalOnTheTokensBefore) {
  // Every token is wrong with probability 0.2 on its own, so the conditional acceptance is 0.8; the share of
  // accepted among drafted tokens would be about 0.42 at length 8.
  Toy toy;
  toy.noise = 0.2;
  Host host(toy, kPrompt, Options(8, 6000));
  host.Run();
  const kvt_verifier_stats_t stats = host.Stats();
  EXPECT_NEAR(stats.acceptance, 0.8, 0.02);
  EXPECT_LT(static_cast<double>(stats.accepted) / static_cast<double>(stats.drafted), 0.5);
  EXPECT_NEAR(stats.mean_accepted, 0.8 * (1 - std::pow(0.8, 8)) / 0.2, 0.25);
}

TEST(Verifier, IdenticalWhenTheHostStopsDraftsEarly) {
  Toy toy;
  toy.noise = 0.3;
  uint64_t calls = 0;
  Host host(toy, kPrompt, Options(12, 200));
  host.stop_early = [&](size_t n) { return Mix(++calls) % (n + 1); };  // 0 too
  host.Run();
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 200));
  EXPECT_GT(host.Stats().fallbacks, 0u);
  EXPECT_GT(host.Stats().rounds, 0u);
}

TEST(Verifier, GivesUpDraftingWhenTheDraftCacheLagsTooFar) {
  Toy toy;
  Host host(toy, kPrompt, Options(8, 400));
  host.stop_early = [](size_t) { return size_t{0}; };
  uint64_t drafts = 0;
  kvt_action_t action;
  do {
    action = host.Next();
    drafts += action.kind == KVT_ACTION_DRAFT;
    // A host without a draft cache: nothing is decoded there.
    if (action.kind == KVT_ACTION_DRAFT) {
      ASSERT_LE(action.width, KVT_VERIFIER_MAX_DRAFT + 1u);
      ASSERT_EQ(kvt_verifier_drafted(host.verifier(), nullptr, 0, 0), KVT_OK);
    } else {
      if (action.kind == KVT_ACTION_FALLBACK) {
        EXPECT_TRUE(action.reason == KVT_REASON_NO_DRAFT || host.out().size() == 399);
      }
      host.Step();
    }
  } while (action.kind != KVT_ACTION_DONE);
  EXPECT_EQ(drafts, KVT_VERIFIER_MAX_DRAFT + 1u);
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 400));
}

TEST(Verifier, IdenticalWithAnEndOfSequence) {
  size_t ended = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Toy toy;
    toy.seed = seed;
    toy.noise = 0.3;
    toy.eos = {7, 11};
    Host host(toy, kPrompt, Options(static_cast<uint32_t>(seed % 12), 60));
    const kvt_action_t last = host.Run();
    const Tokens wanted = toy.Reference(kPrompt, host.options().first_token, 60);
    ASSERT_EQ(host.out(), wanted) << seed;
    const bool eos = wanted.back() == 7 || wanted.back() == 11;
    EXPECT_EQ(last.reason, eos ? KVT_REASON_EOS : KVT_REASON_LENGTH);
    ended += eos;
  }
  EXPECT_GT(ended, 200u);
}

TEST(Verifier, IdenticalAtLevelAWithPaddedWidth) {
  Toy toy;
  toy.noise = 0.2;
  for (const uint32_t length : {0u, 3u, 15u}) {
    kvt_verifier_options_t options = Options(length, 150);
    options.fidelity = KVT_FIDELITY_A;
    options.draft_max = 15;
    options.width = 16;
    Host host(toy, kPrompt, options);
    host.Run();
    EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 150));
  }
}

TEST(Verifier, LevelAPadsTheStepOnTheFullCacheAlone) {
  Toy toy;
  kvt_verifier_options_t options = Options(8, 2);
  options.fidelity = KVT_FIDELITY_A;
  options.width = 12;
  Host host(toy, kPrompt, options);
  EXPECT_EQ(host.Next().kind, KVT_ACTION_FALLBACK);
  EXPECT_EQ(host.Next().width, 12u);
  host.Run();
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 2));
}

TEST(Verifier, LevelBDecidesSmallGapsAgain) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Toy toy;
    toy.seed = seed;
    toy.noise = 0.1;
    toy.soft = 0.15;  // a batch gives the wrong argmax there
    kvt_verifier_options_t options = Options(static_cast<uint32_t>(seed % 10), 120);
    options.fidelity = KVT_FIDELITY_B;
    options.margin = 0.05f;
    Host host(toy, kPrompt, options);
    host.Run();
    ASSERT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 120)) << seed;
    EXPECT_GT(host.Stats().rechecks, 0u);
  }
}

TEST(Verifier, PrefetchComesAfterTheDraftAndOnce) {
  Toy toy;
  kvt_verifier_options_t options = Options(4, 50);
  options.full_ready = 0;
  Host host(toy, kPrompt, options);
  EXPECT_EQ(host.Step().kind, KVT_ACTION_DRAFT);
  EXPECT_EQ(host.Step().kind, KVT_ACTION_PREFETCH);
  EXPECT_EQ(host.Step().kind, KVT_ACTION_VERIFY);
  EXPECT_EQ(host.Step().kind, KVT_ACTION_ROLLBACK);
  EXPECT_EQ(host.Step().kind, KVT_ACTION_COMMIT);
  host.Run();
  EXPECT_EQ(host.loads(), 1u);
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 50));
}

TEST(Verifier, ReloadBringsTheFullCacheInEveryRound) {
  Toy toy;
  toy.noise = 0.1;
  for (const uint32_t length : {0u, 4u}) {
    kvt_verifier_options_t options = Options(length, 90);
    options.full_ready = 0;
    options.full_reload = 1;
    Host host(toy, kPrompt, options);
    host.load_us = 500;
    host.Run();
    const kvt_verifier_stats_t stats = host.Stats();
    EXPECT_EQ(host.loads(), stats.rounds + stats.fallbacks);
    EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 90));
  }
}

TEST(Verifier, NothingIsCommittedWhileTheFullCacheIsLate) {
  Toy toy;
  kvt_verifier_options_t options = Options(4, 50);
  options.full_ready = 0;
  Host host(toy, kPrompt, options);
  host.Step();
  for (int i = 0; i < 3; ++i) {
    const kvt_action_t action = host.Next();
    EXPECT_EQ(action.kind, KVT_ACTION_PREFETCH);
    EXPECT_EQ(action.reason, i == 0 ? KVT_REASON_NONE : KVT_REASON_FULL_LATE);
    EXPECT_EQ(kvt_verifier_loaded(host.verifier(), KVT_ERR_STALLED, 100), KVT_OK);
  }
  EXPECT_EQ(host.Stats().committed, 1u);
  ASSERT_EQ(kvt_verifier_cancel(host.verifier()), KVT_OK);
  EXPECT_EQ(host.Next().kind, KVT_ACTION_DONE);
  EXPECT_EQ(host.Next().reason, KVT_REASON_FULL_LATE);
}

TEST(Verifier, LateFullCacheThatArrivesAfterAllIsUsed) {
  Toy toy;
  kvt_verifier_options_t options = Options(4, 50);
  options.full_ready = 0;
  Host host(toy, kPrompt, options);
  host.Step();
  ASSERT_EQ(kvt_verifier_loaded(host.verifier(), KVT_ERR_PEER_DEAD, 100), KVT_OK);
  EXPECT_EQ(host.Run().reason, KVT_REASON_LENGTH);
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 50));
}

TEST(Verifier, ManyThreadsMayCallIt) {
  Toy toy;
  toy.noise = 0.2;
  Host host(toy, kPrompt, Options(4, 400));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const int32_t token = 1;
      kvt_action_t action = {};
      kvt_verifier_stats_t stats = {};
      for (int i = 0; i < 300; ++i) {
        action.struct_size = sizeof action;
        stats.struct_size = sizeof stats;
        EXPECT_EQ(kvt_verifier_next(host.verifier(), &action), KVT_OK);
        EXPECT_EQ(kvt_verifier_stats(host.verifier(), &stats), KVT_OK);
        // Never due: refused whatever the other threads do.
        EXPECT_EQ(kvt_verifier_rechecked(host.verifier(), token, 0), KVT_ERR_INVALID_ARGUMENT);
        EXPECT_EQ(kvt_verifier_loaded(host.verifier(), KVT_OK, 0), KVT_ERR_INVALID_ARGUMENT);
      }
    });
  }
  host.Run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 400));
}

TEST(Verifier, BudgetOfOneEndsAtOnce) {
  Toy toy;
  Host host(toy, kPrompt, Options(8, 1));
  EXPECT_EQ(host.Next().kind, KVT_ACTION_DONE);
  EXPECT_EQ(host.Next().reason, KVT_REASON_LENGTH);
  EXPECT_EQ(host.Stats().committed, 1u);
}

TEST(Verifier, BudgetOfTwoIsOneStepOnTheFullCache) {
  Toy toy;
  Host host(toy, kPrompt, Options(8, 2));
  const kvt_action_t action = host.Next();
  EXPECT_EQ(action.kind, KVT_ACTION_FALLBACK);
  EXPECT_EQ(action.reason, KVT_REASON_LENGTH);
  EXPECT_EQ(action.width, 1u);
  host.Run();
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 2));
}

TEST(Verifier, FirstTokenThatEndsTheSequenceIsAllThereIs) {
  Toy toy;
  toy.eos = {toy.Full(kPrompt, kPrompt.size())};
  Host host(toy, kPrompt, Options(8, 100));
  EXPECT_EQ(host.Next().kind, KVT_ACTION_DONE);
  EXPECT_EQ(host.Next().reason, KVT_REASON_EOS);
}

TEST(Verifier, AdaptiveTurnsDraftingOffWhenItCannotPay) {
  Toy toy;
  toy.noise = 1;
  Host host(toy, kPrompt, Options(0, 1000));
  host.draft_us = 100;
  host.verify_us = 100;
  host.row_us = 100;
  bool seen = false;
  for (kvt_action_t action = host.Step(); action.kind != KVT_ACTION_DONE; action = host.Step())
    seen = seen || (action.kind == KVT_ACTION_FALLBACK && action.reason == KVT_REASON_UNPROFITABLE);
  EXPECT_TRUE(seen);
  EXPECT_EQ(host.out(), toy.Reference(kPrompt, host.options().first_token, 1000));
  // Trials go on, but rarely.
  EXPECT_GT(host.Stats().rounds, 3u);
  EXPECT_LT(host.Stats().rounds, 60u);
}

TEST(Verifier, AdaptiveDraftsLongWhenVerifyingIsDear) {
  Toy toy;
  Host host(toy, kPrompt, Options(0, 2000));
  host.draft_us = 1;
  host.verify_us = 1000;
  host.row_us = 0;
  uint32_t longest = 0;
  for (kvt_action_t action = host.Step(); action.kind != KVT_ACTION_DONE; action = host.Step())
    if (action.kind == KVT_ACTION_DRAFT) longest = std::max(longest, action.n);
  EXPECT_GE(longest, 31u);
  EXPECT_LE(longest, 32u);
  EXPECT_GT(host.Stats().mean_accepted, 24.0);
}

}  // namespace
}  // namespace kvt_test
