#include "engine/top2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kvt::engine {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Top2, FindsBestAndGapWhereverTheyAre) {
  EXPECT_EQ(Top2(std::vector<float>{1, 5, 3}).token, 1);
  EXPECT_FLOAT_EQ(Top2(std::vector<float>{1, 5, 3}).gap, 2);
  EXPECT_EQ(Top2(std::vector<float>{5, 3, 4.5f}).token, 0);
  EXPECT_FLOAT_EQ(Top2(std::vector<float>{5, 3, 4.5f}).gap, 0.5f);
  EXPECT_FLOAT_EQ(Top2(std::vector<float>{-3, -1}).gap, 2);
}

TEST(Top2, LowestIdWinsAmongEquals) {
  const Choice choice = Top2(std::vector<float>{0, 7, 7, 1});
  EXPECT_EQ(choice.token, 1);
  EXPECT_EQ(choice.gap, 0);
}

TEST(Top2, NanNeverWins) {
  const Choice choice = Top2(std::vector<float>{kNan, 2, kNan, 1});
  EXPECT_EQ(choice.token, 1);
  EXPECT_FLOAT_EQ(choice.gap, 1);
  EXPECT_EQ(Top2(std::vector<float>{kNan, kNan}).token, -1);
  EXPECT_EQ(Top2({}).token, -1);
  EXPECT_EQ(Top2(std::vector<float>{kNan, -kInf}).token, 1);
}

TEST(Top2, OneLogitHasNoSecond) { EXPECT_EQ(Top2(std::vector<float>{4}).gap, kInf); }

TEST(MaxAbsDiff, MeasuresAndReportsWhatIsNoNumber) {
  EXPECT_EQ(MaxAbsDiff(std::vector<float>{1, 2}, std::vector<float>{1, 2}), 0);
  EXPECT_FLOAT_EQ(MaxAbsDiff(std::vector<float>{1, 2, 3}, std::vector<float>{1.5f, 2, 1}), 2);
  EXPECT_EQ(MaxAbsDiff(std::vector<float>{1, kNan}, std::vector<float>{1, 2}), kInf);
  EXPECT_EQ(MaxAbsDiff(std::vector<float>{-kInf}, std::vector<float>{-kInf}), 0);
  EXPECT_EQ(MaxAbsDiff(std::vector<float>{1}, std::vector<float>{1, 2}), kInf);
}

}  // namespace
}  // namespace kvt::engine
