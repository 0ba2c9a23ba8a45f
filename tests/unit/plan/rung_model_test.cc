// The model of one rung: what the formula says, and that it learns what is true.
#include "plan/rung_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kvt::test {
namespace {

TEST(TransferTimeTest, SegmentsOverlap) {
  StageTimes stages = {.encode = 3, .send = 5, .decode = 2, .segments = 1};
  EXPECT_DOUBLE_EQ(TransferTime(stages, {1, 1, 0}), 10);
  EXPECT_DOUBLE_EQ(TransferTime(stages, {2, 1, 0.5}), 15.5);
  stages.segments = 10;
  EXPECT_DOUBLE_EQ(TransferTime(stages, {1, 1, 0}), 1 + 0.9 * 5);
  EXPECT_DOUBLE_EQ(TransferTime(stages, {2, 1, 0}), 1.5 + 0.9 * 6);
  EXPECT_GT(TransferTime(stages, {-5, -5, -5}), 0);
}

class RungModelTest : public testing::TestWithParam<uint32_t> {};

TEST_P(RungModelTest, LearnsFromAllBandwidths) {
  const Correction truth = {1.7, 0.8, 0.003};
  std::mt19937_64 random(4);
  std::normal_distribution<double> noise(0, 0.02);
  RungModel model;
  const auto stages = [](int i) {
    return StageTimes{
        .encode = 0.1, .send = 0.004 * std::pow(3, i % 6), .decode = 0.05, .segments = GetParam()};
  };
  for (int i = 0; i < 120; ++i) {
    model.Observe(stages(i), TransferTime(stages(i), truth) * std::exp(noise(random)));
    model.Forget();
  }
  for (int i = 0; i < 6; ++i) {
    const double expected = TransferTime(stages(i), truth);
    EXPECT_NEAR(TransferTime(stages(i), model.mean()), expected, 0.03 * expected) << i;
    EXPECT_NEAR(TransferTime(stages(i), model.Draw({1, -1, 1})), expected, 0.08 * expected) << i;
  }
  EXPECT_NEAR(model.mean()[0], truth[0], 0.1);
  EXPECT_NEAR(model.mean()[1], truth[1], 0.1);
}

INSTANTIATE_TEST_SUITE_P(Segments, RungModelTest, testing::Values(1, 4, 100));

TEST(RungModelTest, StaysFiniteWhateverIsReported) {
  RungModel model;
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> power(-14, 8);
  for (int i = 0; i < 5000; ++i) {
    const auto value = [&] { return std::pow(10, power(random)); };
    const StageTimes stages = {.encode = value(),
                               .send = value(),
                               .decode = value(),
                               .segments = 1 + static_cast<uint32_t>(random() % 9)};
    model.Observe(stages, value());
    model.Forget();
    ASSERT_TRUE(std::isfinite(TransferTime(stages, model.mean()))) << i;
    ASSERT_TRUE(std::isfinite(TransferTime(stages, model.Draw({3, -3, 3})))) << i;
  }
}

}  // namespace
}  // namespace kvt::test
