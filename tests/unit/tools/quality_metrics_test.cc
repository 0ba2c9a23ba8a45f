#include "kvartet/quality_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kvt::cli {
namespace {

using Row = std::vector<float>;

Row Logits(const std::vector<double>& probabilities, float shift) {
  Row row;
  for (const double p : probabilities) row.push_back(static_cast<float>(std::log(p)) + shift);
  return row;
}

TEST(QualityMetrics, LogSumExpDoesNotOverflow) {
  EXPECT_NEAR(LogSumExp(Row{1000, 1000}), 1000 + std::log(2.0), 1e-9);
  EXPECT_NEAR(LogSumExp(Row{-1000, -1000}), -1000 + std::log(2.0), 1e-9);
}

TEST(QualityMetrics, KlOfKnownDistributions) {
  const double expected = 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75);
  EXPECT_NEAR(KlDivergence(Logits({0.5, 0.5}, 3), Logits({0.25, 0.75}, -7)), expected, 1e-6);
  const double back = 0.25 * std::log(0.25 / 0.5) + 0.75 * std::log(0.75 / 0.5);
  EXPECT_NEAR(KlDivergence(Logits({0.25, 0.75}, 0), Logits({0.5, 0.5}, 0)), back, 1e-6);
}

TEST(QualityMetrics, KlOfEqualRowsIsExactlyZero) {
  const Row row = {3.25f, -1.5f, 17.125f, -300.0f};
  EXPECT_EQ(KlDivergence(row, row), 0.0);
}

TEST(QualityMetrics, KlIsNeverBelowZero) {
  Row a, b;
  for (int i = 0; i < 1000; ++i) {
    a.push_back(std::sin(static_cast<float>(i)));
    b.push_back(a.back() * (1 + 1e-7f));
  }
  EXPECT_GE(KlDivergence(a, b), 0.0);
  EXPECT_LT(KlDivergence(a, b), 1e-9);
}

TEST(QualityMetrics, NanShows) {
  const Row row = {1, 2, 3};
  const Row broken = {1, std::numeric_limits<float>::quiet_NaN(), 3};
  EXPECT_TRUE(std::isnan(KlDivergence(row, broken)));
  EXPECT_TRUE(std::isnan(KlDivergence(broken, row)));
}

TEST(QualityMetrics, NegativeLogLikelihood) {
  const Row row = Logits({0.1, 0.2, 0.7}, 5);
  EXPECT_NEAR(NegativeLogLikelihood(row, 1), -std::log(0.2), 1e-6);
}

TEST(QualityMetrics, PerplexityChange) {
  // Perplexity 4 against 5 over ten tokens.
  EXPECT_NEAR(PerplexityChangePercent(10 * std::log(4.0), 10 * std::log(5.0), 10), 25, 1e-9);
  EXPECT_EQ(PerplexityChangePercent(12.5, 12.5, 10), 0);
  EXPECT_LT(PerplexityChangePercent(12.5, 12, 10), 0);
}

TEST(QualityMetrics, IntervalOfKnownValues) {
  // Mean 3, deviation sqrt(2.5), four degrees of freedom.
  const std::optional<Interval> interval = Interval95(std::vector<double>{1, 2, 3, 4, 5});
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, 3 - 2.7764 * std::sqrt(0.5), 1e-3);
  EXPECT_NEAR(interval->high, 3 + 2.7764 * std::sqrt(0.5), 1e-3);
}

TEST(QualityMetrics, IntervalNeedsTwoValues) {
  EXPECT_FALSE(Interval95(std::vector<double>{}).has_value());
  EXPECT_FALSE(Interval95(std::vector<double>{1}).has_value());
  EXPECT_TRUE(Interval95(std::vector<double>{1, 1}).has_value());
}

TEST(QualityMetrics, IntervalBeyondTheTableOfQuantiles) {
  // n values of -1 and 1 in turn: the deviation of the mean is 1 / sqrt(n - 1).
  const auto quantile = [](size_t n) {
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i) values.push_back(i % 2 == 0 ? 1 : -1);
    return Interval95(values)->high * std::sqrt(static_cast<double>(n - 1));
  };
  EXPECT_NEAR(quantile(12), 2.2010, 1e-3);
  EXPECT_NEAR(quantile(24), 2.0687, 1e-3);
  EXPECT_NEAR(quantile(1000), 1.9623, 1e-3);
}

TEST(QualityMetrics, APairedIntervalIsNarrowerThanTheDocumentsDiffer) {
  const std::vector<double> a = {0.001, 0.010, 0.100};
  const std::vector<double> b = {0.002, 0.011, 0.101};
  std::vector<double> difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(b[i] - a[i]);
  const std::optional<Interval> paired = Interval95(difference);
  EXPECT_NEAR(paired->low, 0.001, 1e-9);
  EXPECT_NEAR(paired->high, 0.001, 1e-9);
  EXPECT_GT(Interval95(a)->high - Interval95(a)->low, 0.1);
}

TEST(QualityMetrics, Ratios) {
  // 100 tokens of 160 bytes, 20 of them exempt, the others at 10 bytes.
  const Sizes sizes = {16000, 3200, 3200 + 800};
  EXPECT_DOUBLE_EQ(WholeRatio(sizes), 4);
  EXPECT_DOUBLE_EQ(CodedRatio(sizes), 16);
  EXPECT_DOUBLE_EQ(AmortisedRatio(sizes, 1, 0, 1), 4);
  EXPECT_DOUBLE_EQ(AmortisedRatio(sizes, 1, 4000, 1), 2);
  EXPECT_DOUBLE_EQ(AmortisedRatio(sizes, 1, 4000, 100), 1.6e6 / 404000);
}

TEST(QualityMetrics, RatiosOfSums) {
  Sizes sizes = {16000, 3200, 4000};
  sizes += Sizes{16000, 3200, 6000};
  EXPECT_DOUBLE_EQ(WholeRatio(sizes), 3.2);
  EXPECT_DOUBLE_EQ(CodedRatio(sizes), 25600.0 / 3600);
  // Contexts of the mean size: 5,000 bytes.
  EXPECT_DOUBLE_EQ(AmortisedRatio(sizes, 2, 5000, 1), 1.6);
}

}  // namespace
}  // namespace kvt::cli
