// Products with packed rows, and the parts of a softmax, against plain loops.
#include "cpu/dots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cpu/softmax.h"

namespace kvt::kernels {
namespace {

std::vector<float> Normal(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(DotPanelsTest, EveryShape) {
  for (const size_t left_rows : {1, 3, 4, 9}) {
    for (const size_t right_rows : {1, 31, 32, 33, 100}) {
      for (const size_t width : {1, 7, 64}) {
        const size_t stride = right_rows + 3;
        const auto left = Normal(left_rows * width, 1), right = Normal(right_rows * width, 2);
        std::vector<float> panels(PanelFloats(right_rows, width)), out(left_rows * stride, 7);
        PackPanels(right.data(), right_rows, width, panels.data());
        DotPanels(left.data(), left_rows, panels.data(), right_rows, width, out.data(), stride);
        for (size_t a = 0; a < left_rows; ++a) {
          for (size_t b = 0; b < stride; ++b) {
            double sum = b < right_rows ? 0 : 7;
            for (size_t c = 0; c < width && b < right_rows; ++c)
              sum += double{left[a * width + c]} * double{right[b * width + c]};
            EXPECT_NEAR(out[a * stride + b], sum, 1e-4) << left_rows << " " << right_rows << " " << width;
          }
        }
      }
    }
  }
}

TEST(ExpRowTest, EveryLength) {
  for (size_t count = 0; count <= 70; ++count) {
    auto row = Normal(count + 1, 3);
    const auto given = row;
    double highest = -1e30, sum = 0;
    for (size_t i = 0; i < count; ++i) highest = std::fmax(highest, 2.5 * double{given[i]});
    const float measured = ExpRow(row.data(), count, 2.5f);
    for (size_t i = 0; i < count; ++i) {
      const double weight = std::exp(2.5 * double{given[i]} - highest);
      sum += weight;
      EXPECT_NEAR(row[i], weight, 1e-6);
    }
    EXPECT_EQ(row[count], given[count]);
    EXPECT_NEAR(measured, sum, 1e-5 * (1 + sum));
  }
}

TEST(ExpRowTest, NonfiniteLogits) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> row(37, 1.0f);
  row[0] = row[35] = nan;
  row[20] = -infinity;
  EXPECT_EQ(ExpRow(row.data(), row.size(), 1), 34);
  EXPECT_EQ(row[0], 0);
  EXPECT_EQ(row[20], 0);
  EXPECT_EQ(row[35], 0);
  EXPECT_EQ(row[36], 1);
  row.assign(20, 1.0f);
  row[17] = infinity;
  EXPECT_EQ(ExpRow(row.data(), row.size(), 1), 1);
  EXPECT_EQ(row[17], 1);
  row.assign(20, nan);
  EXPECT_EQ(ExpRow(row.data(), row.size(), 1), 0);
  EXPECT_EQ(row, std::vector<float>(20));
}

TEST(AddScaledTest, EveryLength) {
  for (size_t count = 0; count <= 40; ++count) {
    const auto row = Normal(count + 1, 4), before = Normal(count + 1, 5);
    auto sums = before;
    AddScaled(row.data(), count, 0.3f, sums.data());
    for (size_t i = 0; i < count; ++i) EXPECT_NEAR(sums[i], before[i] + 0.3f * row[i], 1e-6);
    EXPECT_EQ(sums[count], before[count]);
  }
}

}  // namespace
}  // namespace kvt::kernels
