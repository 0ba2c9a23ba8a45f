// The stop rule against brute force, and the estimates that feed it.
#include "verify/draft_length.h"

#include <gtest/gtest.h>

#include <random>

namespace kvt {
namespace {

// Largest rate over all lengths, by trying each.
double BestRate(const std::vector<double>& a, const RoundCosts& costs) {
  double best = 0;
  for (size_t k = 0; k <= a.size(); ++k) best = std::max(best, CommitRate(a, costs, k));
  return best;
}

TEST(StopRule, EqualsBruteForceOnRandomCurves) {
  std::mt19937_64 random(20240917);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> a(1 + random() % 80);
    const double low = unit(random);
    for (double& p : a) p = low + (1 - low) * unit(random);
    RoundCosts costs;
    costs.draft = 0.01 + unit(random);
    costs.load = round % 3 == 0 ? 0 : 40 * unit(random);
    costs.verify = 0.5 + 2 * unit(random);
    costs.verify_row = round % 2 == 0 ? 0 : 0.2 * unit(random);
    const size_t k = BestDraftLength(a, costs);
    ASSERT_NEAR(CommitRate(a, costs, k), BestRate(a, costs), 1e-12) << round;
  }
}

TEST(StopRule, KnownLengths) {
  const auto best = [](double alpha, double load) {
    RoundCosts costs;
    costs.draft = 0.3;
    costs.verify = 1;
    costs.load = load;
    return BestDraftLength(std::vector<double>(256, alpha), costs);
  };
  EXPECT_EQ(best(0.95, 0), 8u);
  EXPECT_EQ(best(0.95, 10), 27u);
  EXPECT_EQ(best(0.95, 200), 70u);
  EXPECT_EQ(best(0.98, 0), 13u);
  EXPECT_EQ(best(0.98, 10), 49u);
  EXPECT_EQ(best(0.98, 200), 140u);
  EXPECT_EQ(best(0.8, 0), 3u);
  EXPECT_EQ(best(0.8, 10), 10u);
  EXPECT_EQ(best(0.8, 200), 22u);
}

TEST(StopRule, Extremes) {
  RoundCosts costs;
  EXPECT_EQ(BestDraftLength({}, costs), 0u);
  EXPECT_EQ(BestDraftLength({0.5, 0.5}, costs), 2u);  // all is free
  costs.draft = 1;
  EXPECT_EQ(BestDraftLength({0.5, 0.5}, costs), 0u);  // verifying is free, drafting is not
  costs.draft = 0;
  costs.verify = 1;
  EXPECT_EQ(BestDraftLength({0.5, 0.5}, costs), 2u);
  costs.draft = 1;
  EXPECT_EQ(BestDraftLength({0.0, 1.0}, costs), 0u);
  EXPECT_EQ(BestDraftLength(std::vector<double>(5, 1.0), costs), 5u);
}

TEST(DraftLength, FixedNeverMoves) {
  DraftLength length(5, 32);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(length.Next(), 5u);
    length.ObserveRound(5, 1, 0, 1000, 1000, 1);
  }
}

// Runs rounds against a world with given costs and acceptance; returns the length at the end.
size_t Settle(DraftLength* length, double alpha, const RoundCosts& world, int rounds,
              std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < rounds; ++i) {
    const size_t k = length->Next();
    if (k == 0) {
      length->ObserveSingle(world.load, world.verify);
      continue;
    }
    size_t accepted = 0;
    while (accepted < k && unit(random) < alpha) ++accepted;
    const double n = static_cast<double>(k);
    length->ObserveRound(k, std::min(k, accepted + 1), accepted, n * world.draft, world.load,
                         world.verify + n * world.verify_row);
  }
  return length->Next();
}

TEST(DraftLength, ComesNearTheBestLength) {
  RoundCosts world;
  world.draft = 30;
  world.verify = 100;
  world.load = 1000;
  for (const double alpha : {0.8, 0.95, 0.98}) {
    DraftLength length(0, 64);
    // Averaged over the fluctuation of a ten-round window.
    std::mt19937_64 random(7);
    double rate = 0;
    Settle(&length, alpha, world, 50, random);
    for (int i = 0; i < 200; ++i) {
      const size_t k = Settle(&length, alpha, world, 1, random);
      rate += CommitRate(std::vector<double>(64, alpha), world, k) / 200;
    }
    EXPECT_GT(rate, 0.85 * BestRate(std::vector<double>(64, alpha), world)) << alpha;
  }
}

TEST(DraftLength, LearnsTheCostsOfAVerification) {
  RoundCosts world;
  world.draft = 20;
  world.verify = 200;
  world.verify_row = 15;
  world.load = 70;
  DraftLength length(0, 48);
  std::mt19937_64 random(8);
  Settle(&length, 0.9, world, 60, random);
  const RoundCosts learnt = length.Costs();
  EXPECT_NEAR(learnt.draft, 20, 1e-6);
  EXPECT_NEAR(learnt.load, 70, 1e-6);
  EXPECT_NEAR(learnt.verify, 200, 10);
  EXPECT_NEAR(learnt.verify_row, 15, 2);
}

TEST(DraftLength, TurnsOffAndComesBack) {
  RoundCosts dear;
  dear.draft = 100;
  dear.verify = 100;
  dear.verify_row = 100;
  DraftLength length(0, 32);
  std::mt19937_64 random(9);
  int singles = 0, rounds = 0;
  for (int i = 0; i < 600; ++i) {
    length.Next() == 0 ? ++singles : ++rounds;
    Settle(&length, 0.3, dear, 1, random);
  }
  EXPECT_GT(singles, 500);
  EXPECT_GT(rounds, 3);  // trials
  RoundCosts cheap;
  cheap.draft = 1;
  cheap.verify = 100;
  Settle(&length, 1.0, cheap, 700, random);
  EXPECT_GE(length.Next(), 20u);
}

TEST(DraftLength, AnEstimateNeverSaysNever) {
  DraftLength length(0, 8);
  for (int i = 0; i < 500; ++i) length.ObserveRound(1, 1, 0, 1, 0, 1000);
  for (const double a : length.conditional()) {
    EXPECT_GT(a, 0.0);
    EXPECT_LT(a, 0.1);
  }
}

TEST(DraftLength, ZeroTimesAreTaken) {
  DraftLength length(0, 8);
  for (int i = 0; i < 50; ++i) {
    length.ObserveRound(4, 4, 4, 0, 0, 0);
    length.ObserveSingle(0, 0);
    EXPECT_LE(length.Next(), 8u);
  }
}

}  // namespace
}  // namespace kvt
