// The trellis: vector code against the reference, and what it is for: less error at the same rate.
#include "cpu/trellis.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kvt::kernels {
namespace {

constexpr size_t kTables = 4;

std::vector<float> Prices() {
  std::vector<float> prices(kTables * kTrellisPrices);
  for (size_t i = 0; i < prices.size(); ++i)
    prices[i] =
        0.1f * static_cast<float>(i % kTrellisPrices) + 0.03f * static_cast<float>(i / kTrellisPrices);
  return prices;
}

TEST(TrellisTest, EveryStateIsReachedFromTwo) {
  for (uint32_t next = 0; next < kTrellisStates; ++next) {
    for (const TrellisArrival& arrival : kTrellisArrivals.of[next])
      EXPECT_EQ(kTrellisNext[arrival.from][arrival.bit], next);
  }
}

TEST(TrellisTest, VectorsAgreeWithTheReference) {
  const std::vector<float> prices = Prices();
  const TrellisContext context{prices.data(), nullptr};
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 6);
  for (const size_t count : {1u, 7u, 16u, 61u}) {
    std::vector<float> values(count), factors(count), costs(kTrellisStates * count);
    std::vector<uint16_t> tables(count);
    std::vector<uint8_t> arrivals(count), expected_arrivals(count);
    for (size_t t = 0; t < count; ++t) {
      values[t] = t % 13 == 5 ? 1e9f : normal(random);
      factors[t] = 0.5f + static_cast<float>(t % 3);
      tables[t] = static_cast<uint16_t>(2 * (t % 2));
    }
    for (float& cost : costs) cost = normal(random);
    std::vector<float> expected = costs;
    TrellisStep(context, values.data(), factors.data(), tables.data(), count, count, costs.data(),
                arrivals.data());
    reference::TrellisStep(context, values.data(), factors.data(), tables.data(), count, count,
                           expected.data(), expected_arrivals.data());
    for (size_t i = 0; i < costs.size(); ++i)
      ASSERT_NEAR(costs[i], expected[i], 1e-5f * std::fabs(expected[i]) + 1e-4f) << i;
    EXPECT_EQ(arrivals, expected_arrivals);
  }
}

// The best k of a subset is the best of all of its k.
TEST(TrellisTest, AChoiceIsTheBestOfItsSubset) {
  const std::vector<float> prices = Prices();
  for (uint32_t odd = 0; odd < 2; ++odd) {
    for (uint32_t bit = 0; bit < 2; ++bit) {
      for (float distance = 0; distance < 20; distance += 0.07f) {
        const TrellisChoice choice = ChooseTrellis(distance, odd, bit, prices.data());
        float least = 1e30f;
        for (uint32_t magnitude = bit; magnitude < 14; magnitude += 2)
          least = std::min(least, TrellisCost(distance, magnitude, odd, prices.data()));
        EXPECT_LE(choice.cost, least + 1e-5f) << distance << " " << odd << bit;
        EXPECT_EQ(choice.magnitude % 2, bit);
      }
    }
  }
}

}  // namespace
}  // namespace kvt::kernels
