// CacheGen: anchors and differences come back within half a step, whatever the rows are.
#include "codec/cachegen/cachegen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/codec/codec_fixture.h"

namespace kvt::test {
namespace {

constexpr uint64_t kGroup = 10;
constexpr uint32_t kElements[] = {KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16};

// An upper bound of the step of a head's differences to the first tokens of each ten, which are the anchors.
double StepBound(const Memory& memory, const FrameSpec& spec, uint32_t dim, uint32_t layer, uint32_t stream,
                 uint32_t head) {
  const uint64_t begin = spec.exempt_first, end = spec.token_count - spec.exempt_last;
  double variance = 0, largest = 0;
  for (uint32_t e = 0; e < dim && begin < end; ++e) {
    const auto count = static_cast<double>(end - begin);
    double sum = 0, squares = 0;
    for (uint64_t t = begin; t < end; ++t) {
      const double value = memory.Get(layer, stream, t, head, e);
      sum += value;
      squares += value * value;
      const uint64_t anchor = t - (t - begin) % kGroup;
      largest = std::max(largest, std::fabs(value - double{memory.Get(layer, stream, anchor, head, e)}));
    }
    variance += (squares - sum * sum / count) / count / dim;
  }
  // Bins are for one, two and three layers; anchors are rounded, so differences to them are a little larger.
  return std::max(0.5 * (layer + 1) * std::sqrt(std::max(variance, 0.0)), largest / 127 + 0.01) * 1.01;
}

// Encodes and decodes; the target holds the result.
std::vector<uint8_t> RoundTrip(const Memory& source, const Memory& target, uint32_t exempt,
                               const std::shared_ptr<const Model>& model, CodecReport* report = nullptr) {
  const auto codec = MakeCodec(model, "cachegen");
  const FrameSpec spec = MakeSpec(source.view(), exempt, exempt);
  std::vector<uint8_t> frame = Encode(*codec, source.view(), spec, report);
  EXPECT_TRUE(VerifyFrame(Bytes(frame), nullptr).ok());
  const auto decoded = codec->Decode(Bytes(frame), MakeSpec(target.view()), target.view());
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return frame;
}

TEST(CachegenTest, ErrorIsWithinHalfAStep) {
  constexpr uint32_t kDim = 24;
  for (const uint32_t element : kElements) {
    for (const Layout layout : {Layout::kDense, Layout::kPaged, Layout::kStrided}) {
      for (const uint64_t tokens : {1u, 2u, 10u, 11u, 75u, 500u}) {
        for (const uint32_t exempt : {0u, 5u}) {
          const auto model = MakeModel({.layers = 3, .k_dim = kDim, .v_dim = kDim, .element = element});
          Memory source(model, layout, element, tokens, 9);
          source.Fill(1);
          const FrameSpec spec = MakeSpec(source.view(), exempt, exempt);
          Memory target(model, layout, element, tokens, 9);
          CodecReport report;
          RoundTrip(source, target, exempt, model, &report);
          EXPECT_EQ(report.segments, 6u);
          EXPECT_EQ(report.nonfinite, 0u);
          std::vector<double> steps;
          for (uint32_t i = 0; i < 3 * 2 * 2; ++i)
            steps.push_back(StepBound(source, spec, kDim, i / 4, i / 2 % 2, i % 2));
          target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
            const double before = source.Get(layer, stream, token, head, e);
            const double after = target.Get(layer, stream, token, head, e);
            if (token < spec.exempt_first || token >= tokens - spec.exempt_last) {
              ASSERT_EQ(before, after);
              return;
            }
            // Anchors have their own steps, which are a 127th of values below 100.
            const bool anchor = (token - spec.exempt_first) % kGroup == 0;
            const double step = anchor ? 100.0 / 127 : steps[layer * 4 + stream * 2 + head];
            ASSERT_LE(std::fabs(before - after), step / 2 * 1.01 + std::fabs(after) * 0x1p-8)
                << "layer " << layer << " stream " << stream << " token " << token << " element " << e;
          });
        }
      }
    }
  }
}

// As many bits as its bins ask for, with all tables and scales; later layers have fewer.
TEST(CachegenTest, LaterLayersTakeFewerBytes) {
  const auto model = MakeModel({.layers = 9, .heads = 3, .k_dim = 64, .v_dim = 64});
  for (const uint64_t tokens : {256u, 1500u}) {
    Memory source(model, Layout::kDense, KVT_ELEMENT_F16, tokens),
        target(model, Layout::kDense, KVT_ELEMENT_F16, tokens);
    source.Fill(2);
    const std::vector<uint8_t> frame = RoundTrip(source, target, 0, model);
    const auto header = ParseFrame(Bytes(frame));
    ASSERT_TRUE(header.ok());
    const double values = static_cast<double>(tokens) * 3 * 64;
    double bits[3] = {};
    for (const Segment& segment : header->segments)
      if (segment.stream == 1)
        bits[segment.layer_begin / 3] += 8.0 * static_cast<double>(segment.stored_length) / values / 3;
    EXPECT_GT(bits[0], bits[1] + 0.4);
    EXPECT_GT(bits[1], bits[2] + 0.2);
    EXPECT_LT(bits[0], 4.6);
    EXPECT_LT(bits[2], 3.3);
  }
}

// Tokens that resemble their neighbours cost less than those that do not: what the differences are for.
TEST(CachegenTest, TokensLikeTheirAnchorsAreRepeatedAtNoCost) {
  const auto model = MakeModel({.k_dim = 64, .v_dim = 64});
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 1000),
      target(model, Layout::kDense, KVT_ELEMENT_F16, 1000);
  source.Fill(2);
  const size_t apart = RoundTrip(source, target, 0, model).size();
  source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
    source.Set(layer, stream, token, head, e, source.Get(layer, stream, token - token % kGroup, head, e));
  });
  EXPECT_LT(RoundTrip(source, target, 0, model).size(), apart * 6 / 10);
}

TEST(CachegenTest, EqualRowsComeBackNearly) {
  for (const float value : {0.0f, -0.0f, 1.0f / 3, -65504.0f, 6e-8f}) {
    const auto model = MakeModel({});
    Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 45),
        target(model, Layout::kDense, KVT_ELEMENT_F16, 45);
    source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      source.Set(layer, stream, token, head, e, value);
    });
    RoundTrip(source, target, 0, model);
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_NEAR(target.Get(layer, stream, token, head, e), value, std::fabs(value) * 0x1p-9 + 6e-8);
    });
  }
}

TEST(CachegenTest, NanAndInfinitiesHaveADefinedResultAndAreCounted) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const uint32_t element : kElements) {
    const auto model = MakeModel({.layers = 1, .element = element});
    Memory source(model, Layout::kDense, element, 20), target(model, Layout::kDense, element, 20);
    source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      source.Set(layer, stream, token, head, e, 0);
    });
    source.Set(0, 0, 1, 0, 3, std::nanf(""));
    source.Set(0, 0, 4, 1, 5, kInfinity);
    source.Set(0, 1, 10, 0, 2, -kInfinity);
    source.Set(0, 1, 9, 1, 1, std::nanf(""));
    CodecReport report;
    RoundTrip(source, target, 0, model, &report);
    EXPECT_EQ(report.nonfinite, 4u);
    EXPECT_EQ(target.Get(0, 0, 1, 0, 3), 0);
    EXPECT_NEAR(target.Get(0, 0, 4, 1, 5), 65504, 300);
    EXPECT_NEAR(target.Get(0, 1, 10, 0, 2), -65504, 300);
    EXPECT_EQ(target.Get(0, 1, 9, 1, 1), 0);
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_TRUE(std::isfinite(target.Get(layer, stream, token, head, e)));
    });
  }
}

// Random bits of every kind, subnormals among them.
TEST(CachegenTest, AnyBitsGiveFiniteRows) {
  for (const uint32_t element : kElements) {
    const auto model = MakeModel({.element = element});
    Memory source(model, Layout::kDense, element, 130), target(model, Layout::kDense, element, 130);
    source.FillBits(3);
    RoundTrip(source, target, 0, model);
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_TRUE(std::isfinite(target.Get(layer, stream, token, head, e)));
    });
  }
}

TEST(CachegenTest, WideRowsAndManyChunksComeBack) {
  for (const auto& [dim, tokens] : {std::pair<uint32_t, uint64_t>{6000, 12}, {8, 8300}}) {
    const auto model = MakeModel({.layers = 1, .heads = dim == 8 ? 1u : 3u, .k_dim = dim, .v_dim = 8});
    Memory source(model, Layout::kDense, KVT_ELEMENT_F16, tokens),
        target(model, Layout::kDense, KVT_ELEMENT_F16, tokens);
    source.Fill(7);
    RoundTrip(source, target, 1, model);
    double error = 0, squared = 0;
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      const double before = source.Get(layer, stream, token, head, e);
      error += std::pow(before - target.Get(layer, stream, token, head, e), 2);
      squared += before * before;
    });
    EXPECT_LT(error / squared, 0.04);
  }
}

TEST(CachegenTest, Fp8RowsAreRefused) {
  const auto model = MakeModel({.element = KVT_ELEMENT_FP8_E4M3});
  for (const char* name : {"cachegen", "nested_coarse", "nested_rest"}) {
    kvt_codec_options_t options = {};
    options.struct_size = sizeof options;
    options.name = name;
    options.name_len = std::strlen(name);
    EXPECT_EQ(CodeOf(Codec::Create(model, options).status()), KVT_ERR_UNSUPPORTED) << name;
  }
}

}  // namespace
}  // namespace kvt::test
