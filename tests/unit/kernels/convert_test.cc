#include "common/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/element.h"
#include "common/lossy.h"

namespace kvt::kernels {
namespace {

bool IsNan16(uint32_t half, uint32_t exponent, uint32_t mantissa) {
  return (half & exponent) == exponent && (half & mantissa) != 0;
}

TEST(ConvertTest, EveryF16ReturnsThroughF32) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = F16ToF32(static_cast<uint16_t>(half));
    if (IsNan16(half, 0x7c00, 0x3ff)) {
      EXPECT_TRUE(std::isnan(value)) << half;
      EXPECT_EQ(F32ToF16(value), half | 0x200u) << "payload kept, made quiet: " << half;
    } else {
      ASSERT_EQ(F32ToF16(value), half);
    }
  }
}

TEST(ConvertTest, EveryBf16ReturnsThroughF32) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = Bf16ToF32(static_cast<uint16_t>(half));
    if (IsNan16(half, 0x7f80, 0x7f)) {
      EXPECT_EQ(F32ToBf16(value), half | 0x40u);
    } else {
      ASSERT_EQ(F32ToBf16(value), half);
    }
  }
}

// Against the definition: the nearest representable value, the even one of two equally near.
TEST(ConvertTest, F16RoundsToNearestEven) {
  for (uint32_t half = 0; half < 0x7bff; ++half) {
    const double low = F16ToF32(static_cast<uint16_t>(half));
    const double high = F16ToF32(static_cast<uint16_t>(half + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(F32ToF16(middle), half % 2 == 0 ? half : half + 1) << low;
    ASSERT_EQ(F32ToF16(std::nextafter(middle, 0.0f)), half) << low;
    ASSERT_EQ(F32ToF16(std::nextafter(middle, 1e9f)), half + 1) << low;
  }
  EXPECT_EQ(F32ToF16(65519.99f), 0x7bff);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(ConvertTest, Bf16RoundsToNearestEven) {
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(F32ToBf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(LossyScaleTest, ScaleAndMinimumEncloseTheGroup) {
  for (const float low : {-65504.0f, -1234.567f, -1e-3f, -1e-9f, 0.0f, 1e-9f, 0.3333333f, 65000.0f}) {
    for (const float range : {0.0f, 1e-10f, 1e-3f, 0.1f, 17.3f, 500.0f, 131008.0f}) {
      const float high = std::min(low + range, kLossyMax);
      for (const int32_t levels : {3, 15}) {
        const GroupScale group = ScaleOfGroup(low, high, levels);
        const float scale = F16ToF32(group.scale), minimum = F16ToF32(group.minimum);
        EXPECT_LE(minimum, low);
        EXPECT_TRUE(std::isfinite(scale) && std::isfinite(minimum));
        EXPECT_GE(double{minimum} + double{scale} * levels, double{high} - 1e-6 * std::fabs(high))
            << low << " " << range;
      }
    }
  }
}

TEST(LossyScaleTest, AdmitCountsWhatIsNotFinite) {
  uint64_t nonfinite = 0;
  EXPECT_EQ(Admit(std::nanf(""), &nonfinite), 0.0f);
  EXPECT_EQ(Admit(std::numeric_limits<float>::infinity(), &nonfinite), kLossyMax);
  EXPECT_EQ(Admit(-std::numeric_limits<float>::infinity(), &nonfinite), -kLossyMax);
  EXPECT_EQ(nonfinite, 3u);
  EXPECT_EQ(Admit(1e38f, &nonfinite), kLossyMax);
  EXPECT_EQ(Admit(-2.5f, &nonfinite), -2.5f);
  EXPECT_EQ(nonfinite, 3u);
}

}  // namespace
}  // namespace kvt::kernels
