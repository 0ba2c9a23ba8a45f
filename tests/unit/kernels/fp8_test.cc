#include "cpu/fp8.h"

#include "unit/kernels/lossy_fixture.h"

namespace kvt::kernels {
namespace {

constexpr Fp8 kFormats[] = {Fp8::kE4m3, Fp8::kE5m2};

// The value of a code from the definition of the formats; NaN and infinities as in the host's floats.
double Defined(int mantissa_bits, int bias, bool has_infinities, uint32_t code) {
  const int mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>((code & 0x7f) >> mantissa_bits);
  const int exponent_max = (1 << (7 - mantissa_bits)) - 1, mantissa_max = (1 << mantissa_bits) - 1;
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  if (exponent == exponent_max && (has_infinities || mantissa == mantissa_max))
    return has_infinities && mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}
double Defined(Fp8 format, uint32_t code) {
  return format == Fp8::kE4m3 ? Defined(3, 7, false, code) : Defined(2, 15, true, code);
}

float Decoded(Fp8 format, uint32_t code) {
  const auto byte = static_cast<uint8_t>(code);
  return format == Fp8::kE4m3 ? reference::Fp8ToF32<E4m3>(byte) : reference::Fp8ToF32<E5m2>(byte);
}
uint32_t Encoded(Fp8 format, float value) {
  return format == Fp8::kE4m3 ? reference::F32ToFp8<E4m3>(value) : reference::F32ToFp8<E5m2>(value);
}

TEST(Fp8Test, EveryCodeHasItsValue) {
  for (const Fp8 format : kFormats) {
    const float most = format == Fp8::kE4m3 ? 448.0f : 57344.0f;
    for (uint32_t code = 0; code < 256; ++code) {
      const double defined = Defined(format, code);
      const double expected = std::isnan(defined)   ? 0
                              : std::isinf(defined) ? std::copysign(most, defined)
                                                    : defined;
      ASSERT_EQ(Decoded(format, code), expected) << code;
      if (!std::isfinite(defined)) continue;
      ASSERT_EQ(Encoded(format, static_cast<float>(defined)), code);
    }
  }
}

// Against the nearest of all codes; of two that are as near, the even one.
TEST(Fp8Test, RoundsToNearestEvenAndSaturates) {
  std::mt19937 random(21);
  for (const Fp8 format : kFormats) {
    const uint32_t most = format == Fp8::kE4m3 ? 0x7e : 0x7b;
    std::vector<float> values = {1e9f, -1e9f, 465.0f, 61440.0f, 65504.0f, 1e-30f, -1e-30f};
    for (uint32_t code = 0; code < most; ++code) {
      const auto low = static_cast<float>(Defined(format, code));
      const auto middle = static_cast<float>((low + Defined(format, code + 1)) / 2);
      for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
    for (int i = 0; i < 2000; ++i)
      values.push_back(
          std::ldexp(static_cast<float>(random()) * 0x1p-32f, static_cast<int>(random() % 36) - 18));
    EXPECT_EQ(Encoded(format, 1e30f), most);
    for (const float value : values) {
      uint32_t nearest = 0;
      for (uint32_t code = 0; code <= most; ++code) {
        const double distance = std::fabs(Defined(format, code) - std::fabs(value));
        const double best = std::fabs(Defined(format, nearest) - std::fabs(value));
        if (distance < best || (distance == best && code % 2 == 0)) nearest = code;
      }
      ASSERT_EQ(Encoded(format, value), nearest | (std::signbit(value) ? 0x80u : 0u)) << value;
    }
  }
}

class Fp8KernelTest : public LossyTest {};

TEST_P(Fp8KernelTest, IsTheReference) {
  const Element element = GetParam();
  for (const Fp8 format : kFormats) {
    for (const auto& [count, heads, dim] : kShapes) {
      Rows rows(element, count, heads * dim, 31);
      std::vector<uint8_t> expected(count * Fp8RecordBytes(heads, dim));
      uint64_t expected_nonfinite = 0;
      reference::Fp8Encode(format, element, rows.read(), count, heads, dim, expected.data(),
                           &expected_nonfinite);
      Rows decoded(element, count, heads * dim, 32);
      decoded.Clear();
      reference::Fp8Decode(format, element, expected.data(), count, heads, dim, decoded.write());
      ForTargets([&, count = count, heads = heads, dim = dim] {
        std::vector<uint8_t> record(expected.size() + 1, 0x5a);
        uint64_t nonfinite = 0;
        Fp8Encode(format, element, rows.read(), count, heads, dim, record.data(), &nonfinite);
        EXPECT_EQ(record.back(), 0x5a);
        record.pop_back();
        EXPECT_EQ(record, expected) << count << " " << heads << " " << dim;
        EXPECT_EQ(nonfinite, expected_nonfinite);
        Rows out(element, count, heads * dim, 33);
        out.Clear();
        Fp8Decode(format, element, record.data(), count, heads, dim, out.write());
        EXPECT_EQ(out.memory(), decoded.memory()) << count << " " << heads << " " << dim;
      });
    }
  }
}

// All codes under scales of all kinds, NaN, infinities and negative ones among them.
TEST_P(Fp8KernelTest, EveryCodeUnderAnyScaleIsTheReferenceAndFinite) {
  const Element element = GetParam();
  const uint16_t scales[] = {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00, 0xbc00,
                             0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x5893};
  constexpr size_t kDim = 256;
  for (const Fp8 format : kFormats) {
    for (const uint16_t scale : scales) {
      std::vector<uint8_t> record(Fp8RecordBytes(1, kDim));
      StoreHalf(scale, record.data(), 0);
      for (size_t e = 0; e < kDim; ++e) record[2 + e] = static_cast<uint8_t>(e);
      Rows expected(element, 1, kDim, 1);
      expected.Clear();
      reference::Fp8Decode(format, element, record.data(), 1, 1, kDim, expected.write());
      for (size_t e = 0; e < kDim; ++e)
        ASSERT_TRUE(std::isfinite(LoadElement(element, expected.read()[0], e)));
      ForTargets([&] {
        Rows out(element, 1, kDim, 2);
        out.Clear();
        Fp8Decode(format, element, record.data(), 1, 1, kDim, out.write());
        EXPECT_EQ(out.memory(), expected.memory()) << scale;
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, Fp8KernelTest,
                         testing::Values(Element::kF32, Element::kF16, Element::kBf16), ElementOf);

}  // namespace
}  // namespace kvt::kernels
