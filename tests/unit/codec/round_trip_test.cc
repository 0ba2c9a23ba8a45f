#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "common/lossy.h"
#include "unit/codec/codec_fixture.h"

namespace kvt::test {
namespace {

const char* LayoutName(Layout layout) {
  return layout == Layout::kDense ? "dense" : layout == Layout::kPaged ? "paged" : "strided";
}

// Codec, the model's element, the view's element, the layout, exempt tokens at either end.
using Case = std::tuple<const char*, uint32_t, uint32_t, Layout, uint32_t>;

class RoundTripTest : public testing::TestWithParam<Case> {};

// The largest error that rounding to an element type makes at `value`.
double Rounding(uint32_t element, double value) {
  const double magnitude = std::max(std::fabs(value), 6.2e-5);
  return element == KVT_ELEMENT_F32   ? magnitude * 0x1p-23
         : element == KVT_ELEMENT_F16 ? magnitude * 0x1p-11
                                      : magnitude * 0x1p-8;
}

bool StartsWith(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

// Steps between the smallest and the largest value of a group, of int8 and kivi.
double Steps(const std::string& codec) {
  return codec == "int8" ? 254 : std::exp2(std::stod(codec.substr(4))) - 1;
}

// The largest error relative to the norm that we allow a rotated codec; its mean is about a third of it.
double RotatedError(const std::string& codec, uint32_t stream) {
  const char width = codec.size() > 8 && stream == 1 ? codec[9] : codec[7];
  return width == '2' ? 0.9 : width == '3' ? 0.55 : 0.35;
}

// Half a step of the codec at this element, from the definition.
double HalfStep(const std::string& codec, const Memory& memory, const Model& model, uint64_t tokens,
                uint32_t exempt, uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
  double low = 1e9, high = -1e9, largest = 0, squares = 0;
  const auto add = [&](uint64_t t, uint32_t c) {
    const double value = memory.Get(layer, stream, t, head, c);
    low = std::min(low, value);
    high = std::max(high, value);
    largest = std::max(largest, std::fabs(value));
    squares += value * value;
  };
  const uint32_t dim = model.head_dim(stream);
  const bool kivi = StartsWith(codec, "kivi");
  if (!kivi || stream == 1) {
    const uint32_t group = kivi ? 32 : dim, begin = e / group * group;
    for (uint32_t c = begin; c < std::min(begin + group, dim); ++c) add(token, c);
  } else {
    const uint64_t begin = exempt + (token - exempt) / 32 * 32;
    for (uint64_t t = begin; t < std::min<uint64_t>(begin + 32, tokens - exempt); ++t) add(t, e);
  }
  if (StartsWith(codec, "rotated")) return std::sqrt(squares) * RotatedError(codec, stream) + 1e-6;
  if (StartsWith(codec, "fp8")) {
    const bool e5m2 = codec == "fp8_e5m2";
    const double scale = (largest * (1 + 2e-3)) / 448 + 1e-7;
    const double value = std::fabs(memory.Get(layer, stream, token, head, e));
    return value * (1 + 1e-3) / (e5m2 ? 8 : 16) + scale * (e5m2 ? 0x1p-17 : 0x1p-10);
  }
  if (codec == "int8") return (largest * (1 + 2e-3) + 1e-5) / 127 / 2;
  // f16's rounding of scale and minimum widens the range by less than 2^-10 of its ends.
  const double slack = 2e-3 * std::max(std::fabs(low), std::fabs(high)) + 1e-6;
  // Scales are multiples of 2^-24.
  return ((high - low) * (1 + 1e-3) + slack) / Steps(codec) / 2 + 0x1p-25;
}

TEST_P(RoundTripTest, ErrorIsWithinHalfAStep) {
  const auto [name, element, view_element, layout, exempt] = GetParam();
  constexpr uint64_t kTokens = 75;
  const auto model = MakeModel({.k_dim = 40, .v_dim = 72, .element = element});
  const auto codec = MakeCodec(model, name);
  Memory source(model, layout, view_element, kTokens, 1000);
  source.Fill(1);
  const View view = source.view();
  const FrameSpec spec = MakeSpec(view, exempt, exempt);
  CodecReport report;
  const std::vector<uint8_t> frame = Encode(*codec, view, spec, &report);
  EXPECT_EQ(report.segments, 4u);
  EXPECT_EQ(report.nonfinite, 0u);

  Memory target(model, layout, view_element, kTokens, 1000);
  const auto decoded = codec->Decode(Bytes(frame), spec, target.view());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->segments, 4u);
  EXPECT_EQ(decoded->checksums, 6u);
  EXPECT_EQ(decoded->frame_bytes, frame.size());
  EXPECT_EQ(decoded->decoded_bytes, 2 * kTokens * 2 * (40 + 72) * ElementBytes(view_element));
  const bool raw = std::string(name) == "raw";
  target.ForEach([&, exempt = exempt, element = element, view_element = view_element, name = name](
                     uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    const double before = source.Get(layer, stream, token, head, e);
    const double after = target.Get(layer, stream, token, head, e);
    const bool kept = raw || token < exempt || token >= kTokens - exempt;
    if (kept && element == view_element) {
      ASSERT_EQ(before, after);
      return;
    }
    double bound = Rounding(view_element, before) + Rounding(view_element, after);
    if (kept) bound += Rounding(element, before);
    if (!kept) bound += HalfStep(name, source, *model, kTokens, exempt, layer, stream, token, head, e);
    ASSERT_LE(std::fabs(before - after), bound)
        << name << " layer " << layer << " stream " << stream << " token " << token << " element " << e;
  });
}

INSTANTIATE_TEST_SUITE_P(All, RoundTripTest,
                         testing::Combine(testing::ValuesIn(kCodecs),
                                          testing::Values(KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16),
                                          testing::Values(KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16),
                                          testing::Values(Layout::kDense, Layout::kPaged, Layout::kStrided),
                                          testing::Values(0u, 5u)),
                         [](const auto& test) {
                           return absl::StrCat(
                               std::get<0>(test.param), "_", ElementName(std::get<1>(test.param)), "_view_",
                               ElementName(std::get<2>(test.param)), "_", LayoutName(std::get<3>(test.param)),
                               "_exempt", std::get<4>(test.param));
                         });

// Bits that no arithmetic keeps: signalling NaN, payloads, negative zeros.
TEST(RawTest, KeepsEveryBitOfEveryElementType) {
  for (const uint32_t element :
       {KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16, KVT_ELEMENT_FP8_E4M3, KVT_ELEMENT_FP8_E5M2}) {
    for (const Layout layout : {Layout::kDense, Layout::kPaged, Layout::kStrided}) {
      const auto model = MakeModel({.element = element});
      const auto codec = MakeCodec(model, "raw");
      Memory source(model, layout, element, 33);
      source.FillBits(element);
      const View view = source.view();
      const std::vector<uint8_t> frame = Encode(*codec, view, MakeSpec(view, 3, 3));
      Memory target(model, Layout::kDense, element, 33);
      ASSERT_TRUE(codec->Decode(Bytes(frame), MakeSpec(target.view()), target.view()).ok());
      target.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
        ASSERT_EQ(std::memcmp(source.At(layer, stream, token, head, e),
                              target.At(layer, stream, token, head, e), ElementBytes(element)),
                  0);
      });
    }
  }
}

TEST(RoundTripTest, OneTokenAndRaggedGroups) {
  for (const char* name : kCodecs) {
    for (const uint64_t tokens : {1, 2, 31, 32, 33}) {
      const auto model = MakeModel({.heads = 3, .k_dim = 5, .v_dim = 9});
      const auto codec = MakeCodec(model, name, 16, 8);
      Memory source(model, Layout::kDense, KVT_ELEMENT_F16, tokens);
      source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
        source.Set(layer, stream, token, head, e, 0.25f * static_cast<float>(e % 2));
      });
      const FrameSpec spec = MakeSpec(source.view());
      const std::vector<uint8_t> frame = Encode(*codec, source.view(), spec);
      Memory target(model, Layout::kDense, KVT_ELEMENT_F16, tokens);
      ASSERT_TRUE(codec->Decode(Bytes(frame), spec, target.view()).ok());
      target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
        const double bound = StartsWith(name, "rotated") ? 0.5 * RotatedError(name, stream) : 5e-4;
        ASSERT_NEAR(target.Get(layer, stream, token, head, e), 0.25f * static_cast<float>(e % 2), bound)
            << name;
      });
    }
  }
}

// Groups that are constant, the case in which the original KIVI divides by zero.
TEST(LossyCodecTest, ConstantGroupsAreExact) {
  for (const char* name : {"kivi2", "kivi4", "kivi8"}) {
    const auto model = MakeModel({});
    const auto codec = MakeCodec(model, name);
    Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 40);
    source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      source.Set(layer, stream, token, head, e, 1.0f / 3);
    });
    const FrameSpec spec = MakeSpec(source.view());
    const std::vector<uint8_t> frame = Encode(*codec, source.view(), spec);
    Memory target(model, Layout::kDense, KVT_ELEMENT_F16, 40);
    ASSERT_TRUE(codec->Decode(Bytes(frame), spec, target.view()).ok());
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_EQ(target.Get(layer, stream, token, head, e), source.Get(layer, stream, token, head, e));
    });
  }
}

TEST(LossyCodecTest, NanAndInfinitiesHaveADefinedResultAndAreCounted) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const uint32_t element : {KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16}) {
    for (const char* name : kLossyCodecs) {
      const auto model = MakeModel({.layers = 1, .element = element});
      const auto codec = MakeCodec(model, name);
      Memory source(model, Layout::kDense, element, 20);
      source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
        source.Set(layer, stream, token, head, e, 0);
      });
      source.Set(0, 0, 1, 0, 3, std::nanf(""));
      source.Set(0, 0, 4, 1, 5, kInfinity);
      source.Set(0, 1, 7, 0, 2, -kInfinity);
      source.Set(0, 1, 9, 1, 1, std::nanf(""));
      const FrameSpec spec = MakeSpec(source.view());
      CodecReport report;
      const std::vector<uint8_t> frame = Encode(*codec, source.view(), spec, &report);
      EXPECT_EQ(report.nonfinite, 4u);
      Memory target(model, Layout::kDense, element, 20);
      ASSERT_TRUE(codec->Decode(Bytes(frame), spec, target.view()).ok());
      target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
        ASSERT_TRUE(std::isfinite(target.Get(layer, stream, token, head, e)));
      });
      // The largest f16, within the step of the scale's own rounding.
      EXPECT_EQ(target.Get(0, 0, 1, 0, 3), 0) << name;
      EXPECT_NEAR(target.Get(0, 0, 4, 1, 5), kernels::kLossyMax, 300) << name;
      EXPECT_NEAR(target.Get(0, 1, 7, 0, 2), -kernels::kLossyMax, 300) << name;
      EXPECT_EQ(target.Get(0, 1, 9, 1, 1), 0) << name;
    }
  }
}

TEST(LossyCodecTest, ValuesNearTheEndOfF16StayFinite) {
  for (const char* name : kLossyCodecs) {
    const auto model = MakeModel({.layers = 1});
    const auto codec = MakeCodec(model, name);
    Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 64);
    source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      const float ends[] = {65504.0f, -65504.0f, 65472.0f, 12.0f};
      source.Set(layer, stream, token, head, e, ends[(token * 3 + e + stream) % 4]);
    });
    const FrameSpec spec = MakeSpec(source.view());
    const std::vector<uint8_t> frame = Encode(*codec, source.view(), spec);
    Memory target(model, Layout::kDense, KVT_ELEMENT_F16, 64);
    ASSERT_TRUE(codec->Decode(Bytes(frame), spec, target.view()).ok());
    const bool floats = StartsWith(name, "fp8"), rotated = StartsWith(name, "rotated");
    const double half_step = floats    ? 65504.0 / (std::string(name) == "fp8" ? 16 : 8)
                             : rotated ? 65504.0 * 4 * RotatedError(name, 0)
                                       : 131008.0 / Steps(name) / 2;
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      const float after = target.Get(layer, stream, token, head, e);
      ASSERT_TRUE(std::isfinite(after));
      ASSERT_LE(std::fabs(after - source.Get(layer, stream, token, head, e)), half_step * 1.01 + 64) << name;
    });
  }
}

TEST(RoundTripTest, MlaHasOneStream) {
  for (const char* name : kCodecs) {
    const auto model = MakeModel({.layout = KVT_LAYOUT_MLA, .layers = 3, .heads = 1, .k_dim = 576});
    const auto codec = MakeCodec(model, name);
    Memory source(model, Layout::kPaged, KVT_ELEMENT_F16, 50);
    source.Fill(3);
    const FrameSpec spec = MakeSpec(source.view());
    CodecReport report;
    const std::vector<uint8_t> frame = Encode(*codec, source.view(), spec, &report);
    EXPECT_EQ(report.segments, 3u);
    Memory target(model, Layout::kPaged, KVT_ELEMENT_F16, 50);
    ASSERT_TRUE(codec->Decode(Bytes(frame), spec, target.view()).ok());
    double squared = 0, error = 0;
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      const double before = source.Get(layer, stream, token, head, e);
      squared += before * before;
      error += std::pow(before - target.Get(layer, stream, token, head, e), 2);
    });
    const double most = std::string(name) == "kivi2"      ? 0.2
                        : std::string(name) == "rotated2" ? 0.13
                        : std::string(name) == "rotated3" ? 0.04
                                                          : 0.012;
    EXPECT_LT(error / squared, most) << name;
  }
}

TEST(RoundTripTest, DecodesOnlyTheLayersAskedFor) {
  for (const char* name : kCodecs) {
    const auto model = MakeModel({.layers = 4});
    const auto codec = MakeCodec(model, name);
    Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 20);
    source.Fill(4);
    FrameSpec spec = MakeSpec(source.view());
    std::vector<uint8_t> frame = Encode(*codec, source.view(), spec);
    // Damage in a layer that is not asked for does not matter, in one that is it does.
    const auto header = ParseFrame(Bytes(frame));
    ASSERT_TRUE(header.ok());
    frame[header->payload_offset + header->segments[0].offset] ^= 1;
    spec.layer_begin = 1;
    spec.layer_end = 3;
    Memory target(model, Layout::kDense, KVT_ELEMENT_F16, 20);
    const auto decoded = codec->Decode(Bytes(frame), spec, target.view());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->segments, 4u);
    EXPECT_EQ(decoded->checksums, 6u);
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      const bool untouched = *target.At(layer, stream, token, head, e) == 0xcd &&
                             *(target.At(layer, stream, token, head, e) + 1) == 0xcd;
      ASSERT_EQ(untouched, layer == 0 || layer == 3) << layer;
    });
    spec.layer_begin = 0;
    EXPECT_EQ(CodeOf(codec->Decode(Bytes(frame), spec, target.view()).status()), KVT_ERR_CORRUPT);
  }
}

// A frame of some tokens of a view, decoded to other places of another view.
TEST(RoundTripTest, TokensInsideAView) {
  const auto model = MakeModel({});
  const auto codec = MakeCodec(model, "raw");
  Memory source(model, Layout::kPaged, KVT_ELEMENT_F16, 40, 100);
  source.Fill(5);
  FrameSpec spec = MakeSpec(source.view());
  spec.token_begin = 17;
  spec.token_count = 11;
  const std::vector<uint8_t> frame = Encode(*codec, source.view(), spec);
  Memory target(model, Layout::kStrided, KVT_ELEMENT_F16, 30, 110);
  spec.token_begin = 7;  // position 117 again
  ASSERT_TRUE(codec->Decode(Bytes(frame), spec, target.view()).ok());
  target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
    if (token >= 7 && token < 18) {
      ASSERT_EQ(target.Get(layer, stream, token, head, e), source.Get(layer, stream, token + 10, head, e));
    } else {
      ASSERT_EQ(*target.At(layer, stream, token, head, e), 0xcd);
    }
  });
}

TEST(RoundTripTest, AnyCodecOfTheModelDecodesAnyFrame) {
  const auto model = MakeModel({});
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 20);
  source.Fill(6);
  const FrameSpec spec = MakeSpec(source.view());
  for (const char* from : kCodecs) {
    const std::vector<uint8_t> frame = Encode(*MakeCodec(model, from, 64, 16), source.view(), spec);
    for (const char* with : kCodecs) {
      Memory target(model, Layout::kDense, KVT_ELEMENT_F16, 20);
      EXPECT_TRUE(MakeCodec(model, with)->Decode(Bytes(frame), spec, target.view()).ok()) << from << with;
    }
  }
}

}  // namespace
}  // namespace kvt::test
