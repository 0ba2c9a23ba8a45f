// The scalar quantiser: vector code against the reference, and that it takes the cheapest code.
#include "cpu/scalar.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kvt::kernels {
namespace {

constexpr size_t kTables = 4;

// What bits cost more, the larger k is, and in later tables.
std::vector<float> Prices() {
  std::vector<float> prices(kTables * kTrellisPrices);
  for (size_t i = 0; i < prices.size(); ++i)
    prices[i] =
        0.21f * static_cast<float>(i % kTrellisPrices) + 0.17f * static_cast<float>(i / kTrellisPrices);
  return prices;
}

TEST(ScalarTest, VectorsAgreeWithTheReference) {
  const std::vector<float> prices = Prices();
  const TrellisContext context{prices.data(), nullptr};
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 6);
  for (const size_t count : {1u, 7u, 16u, 61u}) {
    std::vector<float> values(count), factors(count);
    std::vector<uint16_t> tables(count);
    for (size_t t = 0; t < count; ++t) {
      values[t] = t % 13 == 5 ? -1e9f : normal(random);
      factors[t] = 0.5f + static_cast<float>(t % 3);
      tables[t] = static_cast<uint16_t>(2 * (t % 2));
    }
    std::vector<int16_t> codes(count), expected(count);
    ScalarCodes(context, values.data(), factors.data(), tables.data(), count, codes.data());
    reference::ScalarCodes(context, values.data(), factors.data(), tables.data(), count, expected.data());
    EXPECT_EQ(codes, expected);
  }
}

TEST(ScalarTest, CodesAreTheCheapest) {
  const std::vector<float> prices = Prices();
  const TrellisContext context{prices.data(), nullptr};
  const float factor = 1;
  for (const uint16_t table : {0, 2}) {
    for (float value = -20; value < 20; value += 0.07f) {
      int16_t code = 0;
      ScalarCodes(context, &value, &factor, &table, 1, &code);
      const float* own = prices.data() + table * kTrellisPrices;
      float least = 1e30f;
      for (uint32_t magnitude = 0; magnitude < 14; ++magnitude)
        least = std::min(least, TrellisCost(std::fabs(value), magnitude, 0, own));
      EXPECT_LE(TrellisCost(std::fabs(value), static_cast<uint32_t>(std::abs(code)), 0, own), least + 1e-5f)
          << value;
      EXPECT_TRUE(code == 0 || (code < 0) == (value < 0)) << value;
    }
  }
}

}  // namespace
}  // namespace kvt::kernels
