#include "unit/codec/reseal.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

constexpr uint64_t kTokens = 333;

// Decodes a frame of the whole view into new memory.
Memory Decoded(const std::shared_ptr<const Model>& model, const Codec& codec,
               const std::vector<uint8_t>& frame, Layout layout, uint32_t element, uint64_t tokens,
               uint64_t first_position) {
  Memory memory(model, layout, element, tokens, first_position);
  const auto decoded = codec.Decode(Bytes(frame), MakeSpec(memory.view()), memory.view());
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return memory;
}

TEST(TransformTest, LessIsLostWithMoreBytes) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, kTokens);
  FillCorrelated(*model, &memory, 99);
  double before = 0;
  for (const uint32_t ratio : {4u, 8u, 16u, 32u}) {
    const auto codec = MakeTransform(model, SharedProfile(), ratio);
    const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()));
    const Memory back = Decoded(model, *codec, frame, Layout::kDense, KVT_ELEMENT_F16, kTokens, 0);
    const double lost = LostPart(*model, memory, back, 0, kTokens);
    RecordProperty(absl::StrCat("lost_at_", ratio), absl::StrCat(lost));
    EXPECT_GT(lost, before) << ratio;
    EXPECT_LT(lost, ratio == 4 ? 0.0015 : ratio == 8 ? 0.01 : ratio == 16 ? 0.12 : 0.5) << ratio;
    before = lost;
  }
}

TEST(TransformTest, CodedBytesHaveTheRatioAskedFor) {
  const auto model = MakeModel(KvShape());
  constexpr uint64_t kMany = 2048;
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, kMany);
  FillCorrelated(*model, &memory, 99);
  const uint64_t raw = kMany * 6 * 2 * (32 + 24) * 2;
  for (const uint32_t ratio : {4u, 8u, 16u, 32u}) {
    const auto codec = MakeTransform(model, SharedProfile(), ratio);
    const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()));
    const auto header = ParseFrame(Bytes(frame));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->ratio, ratio);
    uint64_t stored = 0;
    for (const Segment& segment : header->segments) stored += segment.stored_length;
    const double got = static_cast<double>(raw) / static_cast<double>(stored);
    EXPECT_NEAR(got, ratio, 0.01 * ratio);
  }
}

struct Case {
  Layout layout;
  uint32_t element;
  uint64_t tokens;
  uint32_t exempt_first, exempt_last;
};

class TransformLayoutTest : public testing::TestWithParam<Case> {};

TEST_P(TransformLayoutTest, RoundTrip) {
  const Case& c = GetParam();
  const auto model = MakeModel(KvShape());
  Memory memory(model, c.layout, c.element, c.tokens, 1000);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeTransform(model, SharedProfile(), 8);
  const View view = memory.view();
  CodecReport report;
  const auto frame = Encode(*codec, view, MakeSpec(view, c.exempt_first, c.exempt_last), &report);
  EXPECT_EQ(report.segments, 6u);
  EXPECT_EQ(report.nonfinite, 0u);
  Memory back = Decoded(model, *codec, frame, c.layout, c.element, c.tokens, 1000);
  const uint64_t first = std::min<uint64_t>(c.exempt_first, c.tokens);
  const uint64_t end = c.tokens - std::min<uint64_t>(c.exempt_last, c.tokens - first);
  if (end > first + 1) {
    EXPECT_LT(LostPart(*model, memory, back, first, end), 0.02);
  }
  back.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    const float was = memory.Get(layer, stream, token, head, e), is = back.Get(layer, stream, token, head, e);
    if (token < first || token >= end) {
      ASSERT_EQ(is, kernels::F16ToF32(kernels::F32ToF16(was)));
    } else {
      ASSERT_NEAR(is, was, 8);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, TransformLayoutTest,
                         testing::Values(Case{Layout::kDense, KVT_ELEMENT_F16, 333, 4, 17},
                                         Case{Layout::kPaged, KVT_ELEMENT_F16, 333, 0, 0},
                                         Case{Layout::kStrided, KVT_ELEMENT_F16, 40, 3, 0},
                                         Case{Layout::kDense, KVT_ELEMENT_F32, 257, 0, 0},
                                         Case{Layout::kPaged, KVT_ELEMENT_F32, 256, 4, 128},
                                         Case{Layout::kDense, KVT_ELEMENT_F16, 1, 0, 0},
                                         Case{Layout::kDense, KVT_ELEMENT_F16, 1, 1, 0},
                                         Case{Layout::kDense, KVT_ELEMENT_F16, 16, 4, 0},
                                         Case{Layout::kDense, KVT_ELEMENT_F16, 10, 6, 100}));

TEST(TransformTest, PartOfTheLayersDecodesToTheSame) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 100);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeTransform(model, SharedProfile(), 16);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 5));
  const Memory whole = Decoded(model, *codec, frame, Layout::kDense, KVT_ELEMENT_F16, 100, 0);
  for (uint32_t begin = 0; begin < 6; ++begin) {
    for (uint32_t end = begin + 1; end <= 6; ++end) {
      Memory part(model, Layout::kDense, KVT_ELEMENT_F16, 100);
      FrameSpec spec = MakeSpec(part.view());
      spec.layer_begin = begin;
      spec.layer_end = end;
      const auto decoded = codec->Decode(Bytes(frame), spec, part.view());
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      part.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
        if (layer < begin || layer >= end) {
          ASSERT_EQ(*part.At(layer, stream, token, head, e), 0xcd);
        } else {
          // A product of fewer columns may sum in another order: one unit of f16 at most.
          const float is = part.Get(layer, stream, token, head, e);
          ASSERT_NEAR(is, whole.Get(layer, stream, token, head, e), std::fabs(is) * 0x1p-9f + 1e-4f);
        }
      });
    }
  }
}

TEST(TransformTest, AFrameOfWholeGroupsOfLayers) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 50);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeTransform(model, SharedProfile(), 8);
  FrameSpec spec = MakeSpec(memory.view());
  spec.layer_begin = 2;
  spec.layer_end = 4;
  const auto frame = Encode(*codec, memory.view(), spec);
  Memory back(model, Layout::kDense, KVT_ELEMENT_F16, 50);
  const auto decoded = codec->Decode(Bytes(frame), spec, back.view());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->segments, 2u);
  EXPECT_NEAR(back.Get(3, 1, 30, 1, 5), memory.Get(3, 1, 30, 1, 5), 3);
  spec.layer_end = 3;
  const auto bound = codec->Bound(memory.view(), spec);
  EXPECT_EQ(CodeOf(bound.status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(bound.status().message().find("[2, 3)"), std::string::npos) << bound.status();
}

TEST(TransformTest, TheSameRowsGiveTheSameBytes) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 300);
  FillCorrelated(*model, &memory, 99);
  Memory paged(model, Layout::kPaged, KVT_ELEMENT_F16, 300);
  FillCorrelated(*model, &paged, 99);
  const auto codec = MakeTransform(model, SharedProfile(), 16);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 9));
  EXPECT_EQ(frame, Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 9)));
  EXPECT_EQ(frame, Encode(*codec, paged.view(), MakeSpec(paged.view(), 4, 9)));
}

TEST(TransformTest, ACodecDecodesFramesOfOtherRatios) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 60);
  FillCorrelated(*model, &memory, 99);
  const auto fine = MakeTransform(model, SharedProfile(), 5),
             coarse = MakeTransform(model, SharedProfile(), 31);
  const auto frame = Encode(*fine, memory.view(), MakeSpec(memory.view()));
  const Memory back = Decoded(model, *coarse, frame, Layout::kDense, KVT_ELEMENT_F16, 60, 0);
  EXPECT_LT(LostPart(*model, memory, back, 0, 60), 0.01);
}

TEST(TransformTest, SelectedTokensAreRefused) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 40);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeTransform(model, SharedProfile(), 16);
  FrameSpec spec = MakeSpec(memory.view());
  const auto frame = Encode(*codec, memory.view(), spec);
  spec.first_position = 0;
  for (uint32_t t = 0; t < 40; ++t) spec.position_offsets.push_back(2 * t);
  EXPECT_EQ(CodeOf(codec->Bound(memory.view(), spec).status()), KVT_ERR_UNSUPPORTED);
  // A frame that says so all the same.
  FrameHeader header = *ParseFrame(Bytes(frame));
  header.position_offsets = spec.position_offsets;
  const auto forged = WithHeader(frame, header, header.payload_offset);
  EXPECT_EQ(CodeOf(codec->Decode(Bytes(forged), spec, memory.view()).status()), KVT_ERR_UNSUPPORTED);
  EXPECT_EQ(CodeOf(codec->Decode(Bytes(forged), MakeSpec(memory.view()), memory.view()).status()),
            KVT_ERR_MISMATCH);
}

TEST(TransformTest, OutliersAreToldExactly) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 200);
  FillCorrelated(*model, &memory, 99);
  // Far outside of what any document has, in one channel of one token.
  memory.Set(1, 1, 100, 1, 7, 300.0f);
  const auto codec = MakeTransform(model, SharedProfile(), 8);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()));
  const Memory back = Decoded(model, *codec, frame, Layout::kDense, KVT_ELEMENT_F16, 200, 0);
  double error = 0;
  for (uint32_t e = 0; e < 24; ++e)
    error += std::fabs(back.Get(1, 1, 100, 0, e) - memory.Get(1, 1, 100, 0, e));
  EXPECT_LT(error / 24, 25);
  EXPECT_LT(LostPart(*model, memory, back, 0, 90), 0.01);
  EXPECT_LT(LostPart(*model, memory, back, 110, 200), 0.01);
}

TEST(TransformTest, NonfiniteValuesAreCountedAndDecodeFinite) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 64);
  FillCorrelated(*model, &memory, 99);
  memory.Set(0, 0, 10, 0, 3, std::nanf(""));
  memory.Set(5, 1, 63, 1, 23, INFINITY);
  memory.Set(2, 1, 20, 0, 0, -INFINITY);
  const auto codec = MakeTransform(model, SharedProfile(), 16);
  CodecReport report;
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()), &report);
  EXPECT_EQ(report.nonfinite, 3u);
  const Memory back = Decoded(model, *codec, frame, Layout::kDense, KVT_ELEMENT_F16, 64, 0);
  back.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    ASSERT_TRUE(std::isfinite(back.Get(layer, stream, token, head, e)));
  });
}

TEST(TransformTest, MlaAndHalfSplitRope) {
  KvShape mla;
  mla.layout = KVT_LAYOUT_MLA;
  mla.heads = 1;
  mla.k_dim = 72;
  mla.rope_offset = 56;
  mla.rope_dims = 16;
  KvShape half;
  half.rope_style = KVT_ROPE_HALF_SPLIT;
  half.rope_dims = 20;
  KvShape plain;
  plain.rope_style = KVT_ROPE_NONE;
  KvShape bf16;
  bf16.element = KVT_ELEMENT_BF16;
  for (const KvShape& shape : {mla, half, plain, bf16}) {
    const auto model = MakeModel(shape);
    Memory memory(model, Layout::kDense, shape.element, 120, 500);
    FillCorrelated(*model, &memory, 99);
    const auto codec = MakeTransform(model, MakeProfile(model), 8);
    const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 0));
    const Memory back = Decoded(model, *codec, frame, Layout::kDense, shape.element, 120, 500);
    EXPECT_LT(LostPart(*model, memory, back, 4, 120), 0.02);
  }
}

}  // namespace
}  // namespace kvt::test
