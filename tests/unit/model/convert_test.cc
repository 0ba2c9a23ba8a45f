// Every f16 and bf16 value, and every rounding boundary between neighbours.
#include "common/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace kvt::kernels {
namespace {

// By the definition of the format: sign, exponent, fraction.
double Meaning(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = (bits >> fraction_bits) & top, fraction = bits & ((1 << fraction_bits) - 1);
  double value;
  if (exponent == top) {
    value =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - bias - fraction_bits);
  } else {
    value = std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

struct Format {
  int exponent_bits, fraction_bits;
  std::function<float(uint16_t)> widen;
  std::function<uint16_t(float)> narrow;
};

void CheckAllValues(const Format& format) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const double meaning = Meaning(bits, format.exponent_bits, format.fraction_bits);
    const float wide = format.widen(bits);
    if (std::isnan(meaning)) {
      ASSERT_TRUE(std::isnan(wide)) << i;
      ASSERT_TRUE(std::isnan(format.widen(format.narrow(wide)))) << i;
      continue;
    }
    ASSERT_EQ(wide, meaning) << i;
    ASSERT_EQ(std::signbit(wide), std::signbit(meaning)) << i;
    ASSERT_EQ(format.narrow(wide), bits) << i;
  }
}

void CheckAllBoundaries(const Format& format) {
  const uint16_t infinity = static_cast<uint16_t>(((1 << format.exponent_bits) - 1) << format.fraction_bits);
  for (const uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
    const float side = sign == 0 ? 1.0f : -1.0f;
    for (uint16_t low = 0; low < infinity; ++low) {
      const uint16_t high = low + 1;
      // Above the greatest finite value rounding goes as if the next binade went on.
      const double upper = high == infinity ? 2 * Meaning(low, format.exponent_bits, format.fraction_bits) -
                                                  Meaning(low - 1, format.exponent_bits, format.fraction_bits)
                                            : Meaning(high, format.exponent_bits, format.fraction_bits);
      const double middle = (Meaning(low, format.exponent_bits, format.fraction_bits) + upper) / 2;
      const float tie = static_cast<float>(middle);
      ASSERT_EQ(tie, middle);
      const uint16_t even = low % 2 == 0 ? low : high;
      ASSERT_EQ(format.narrow(side * tie), sign | even) << low;
      ASSERT_EQ(format.narrow(side * std::nextafter(tie, 0.0f)), sign | low) << low;
      ASSERT_EQ(format.narrow(side * std::nextafter(tie, std::numeric_limits<float>::infinity())),
                sign | high)
          << low;
    }
    ASSERT_EQ(format.narrow(side * std::numeric_limits<float>::infinity()), sign | infinity);
    ASSERT_EQ(format.narrow(side * std::numeric_limits<float>::max()), sign | infinity);
    ASSERT_EQ(format.narrow(side * 0.0f), sign);
  }
}

const Format kF16{5, 10, F16ToF32, F32ToF16};
const Format kBf16{8, 7, Bf16ToF32, F32ToBf16};

TEST(ConvertTest, EveryF16Value) { CheckAllValues(kF16); }
TEST(ConvertTest, EveryF16RoundingBoundary) { CheckAllBoundaries(kF16); }
TEST(ConvertTest, EveryBf16Value) { CheckAllValues(kBf16); }
TEST(ConvertTest, EveryBf16RoundingBoundary) { CheckAllBoundaries(kBf16); }

}  // namespace
}  // namespace kvt::kernels
