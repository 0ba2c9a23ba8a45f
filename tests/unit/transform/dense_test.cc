// Codec dense: round trips, how exempt tokens are kept, importance, and bytes that are not its own.
#include "unit/codec/reseal.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

constexpr uint64_t kTokens = 700;

std::shared_ptr<const Codec> MakeDense(const std::shared_ptr<const Model>& model, uint32_t ratio,
                                       uint32_t exempt = 0) {
  auto codec = CreateTransform(model, SharedProfile(), ratio, "dense", exempt);
  EXPECT_TRUE(codec.ok()) << codec.status();
  return codec.ok() ? *codec : nullptr;
}

Memory Decoded(const std::shared_ptr<const Model>& model, const Codec& codec,
               const std::vector<uint8_t>& frame, uint64_t tokens, uint64_t first_position = 0) {
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, tokens, first_position);
  const auto decoded = codec.Decode(Bytes(frame), MakeSpec(memory.view()), memory.view());
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return memory;
}

uint64_t StoredBytes(const std::vector<uint8_t>& frame) {
  const auto header = ParseFrame(Bytes(frame));
  EXPECT_TRUE(header.ok()) << header.status();
  uint64_t stored = 0;
  for (const Segment& segment : header->segments) stored += segment.stored_length;
  return stored;
}

TEST(DenseTest, LessIsLostThanAtFixedWidths) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, kTokens);
  FillCorrelated(*model, &memory, 99);
  const auto raw = static_cast<double>(kTokens * 6 * 2 * (32 + 24) * 2);
  double before = 0;
  for (const uint32_t ratio : {8u, 16u, 32u}) {
    const auto codec = MakeDense(model, ratio);
    const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()));
    const double coded = raw / static_cast<double>(StoredBytes(frame));
    const double lost = LostPart(*model, memory, Decoded(model, *codec, frame, kTokens), 0, kTokens);
    const auto fixed = MakeTransform(model, SharedProfile(), ratio);
    const auto other = Encode(*fixed, memory.view(), MakeSpec(memory.view()));
    const double fixed_lost = LostPart(*model, memory, Decoded(model, *fixed, other, kTokens), 0, kTokens);
    // 256 bytes of states are much of these short segments.
    EXPECT_NEAR(coded, ratio, 0.3 * ratio);
    EXPECT_LT(lost, fixed_lost) << "at " << ratio << ", coded " << coded;
    EXPECT_GT(lost, before);
    before = lost;
  }
}

struct Case {
  uint64_t tokens;
  uint32_t exempt_first, exempt_last, exempt;
};

class DenseExemptTest : public testing::TestWithParam<Case> {};

TEST_P(DenseExemptTest, RoundTrip) {
  const Case& c = GetParam();
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, c.tokens, 500);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeDense(model, 16, c.exempt);
  CodecReport report;
  const auto frame =
      Encode(*codec, memory.view(), MakeSpec(memory.view(), c.exempt_first, c.exempt_last), &report);
  EXPECT_EQ(report.segments, 6u);
  Memory back = Decoded(model, *codec, frame, c.tokens, 500);
  const uint64_t first = std::min<uint64_t>(c.exempt_first, c.tokens);
  const uint64_t last = std::min<uint64_t>(c.exempt_last, c.tokens - first);
  back.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    const float was = memory.Get(layer, stream, token, head, e), is = back.Get(layer, stream, token, head, e);
    if (token >= first && token < c.tokens - last) {
      ASSERT_NEAR(is, was, 9);
    } else if (c.exempt == KVT_EXEMPT_RAW) {
      ASSERT_EQ(is, was);
    } else if (c.exempt == KVT_EXEMPT_INT8 || first + last == c.tokens || token < first ||
               token >= c.tokens - std::min<uint64_t>(last, 32)) {
      ASSERT_NEAR(is, was, 0.3);
    } else {
      ASSERT_NEAR(is, was, 4);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, DenseExemptTest,
                         testing::Values(Case{700, 4, 128, KVT_EXEMPT_RAW},
                                         Case{700, 4, 128, KVT_EXEMPT_INT8},
                                         Case{700, 4, 128, KVT_EXEMPT_FINER},
                                         Case{513, 0, 0, KVT_EXEMPT_FINER}, Case{1, 0, 0, KVT_EXEMPT_FINER},
                                         Case{1, 1, 0, KVT_EXEMPT_FINER}, Case{30, 4, 128, KVT_EXEMPT_FINER},
                                         Case{40, 0, 40, KVT_EXEMPT_FINER}, Case{16, 4, 12, KVT_EXEMPT_RAW}));

TEST(DenseTest, ImportantTokensLoseLess) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, kTokens);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeDense(model, 24);
  std::vector<int8_t> importance(kTokens, 2);
  for (size_t t = 100; t < 200; ++t) importance[t] = -8;
  FrameSpec spec = MakeSpec(memory.view());
  spec.importance = importance.data();
  const auto frame = Encode(*codec, memory.view(), spec);
  const Memory back = Decoded(model, *codec, frame, kTokens);
  EXPECT_LT(4 * LostPart(*model, memory, back, 100, 200), LostPart(*model, memory, back, 300, 400));
}

TEST(DenseTest, ValuesFarOutsideAreToldAndNonfiniteOnesCounted) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 60);
  FillCorrelated(*model, &memory, 99);
  memory.Set(1, 0, 30, 1, 3, 60000.0f);
  memory.Set(2, 1, 31, 0, 7, -60000.0f);
  memory.Set(3, 1, 32, 0, 7, NAN);
  memory.Set(3, 1, 33, 0, 7, INFINITY);
  const auto codec = MakeDense(model, 16);
  CodecReport report;
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()), &report);
  EXPECT_EQ(report.nonfinite, 2u);
  Memory back = Decoded(model, *codec, frame, 60);
  back.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    ASSERT_TRUE(std::isfinite(back.Get(layer, stream, token, head, e)));
  });
  // The whole token's step is coarser, in proportion to what its components have.
  EXPECT_GT(back.Get(2, 1, 31, 0, 7), -65504.0f);
  EXPECT_LT(back.Get(2, 1, 31, 0, 7), 0.0f);
}

TEST(DenseTest, RowsOfNoiseAreNeverLongerThanRaw) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 100);
  memory.Fill(3);
  const auto codec = MakeDense(model, 8);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 90));
  EXPECT_LE(frame.size(), 100u * 6 * 2 * (32 + 24) * 2 + 4096);
  Decoded(model, *codec, frame, 100);
}

TEST(DenseTest, PartOfTheLayersDecodesToTheSame) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 100);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeDense(model, 16);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 50));
  const Memory whole = Decoded(model, *codec, frame, 100);
  Memory part(model, Layout::kDense, KVT_ELEMENT_F16, 100);
  FrameSpec spec = MakeSpec(part.view());
  spec.layer_begin = 1;
  spec.layer_end = 4;
  ASSERT_TRUE(codec->Decode(Bytes(frame), spec, part.view()).ok());
  part.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    if (layer < 1 || layer >= 4) {
      ASSERT_EQ(*part.At(layer, stream, token, head, e), 0xcd);
    } else {
      const float is = part.Get(layer, stream, token, head, e);
      ASSERT_NEAR(is, whole.Get(layer, stream, token, head, e), std::fabs(is) * 0x1p-9f + 1e-4f);
    }
  });
}

TEST(DenseTest, BothKindsDecodeFramesOfTheOther) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 100);
  FillCorrelated(*model, &memory, 99);
  const auto dense = MakeDense(model, 16), coarse = MakeDense(model, 64);
  const auto fixed = MakeTransform(model, SharedProfile(), 16);
  const auto frame = Encode(*dense, memory.view(), MakeSpec(memory.view(), 4, 50));
  const auto other = Encode(*fixed, memory.view(), MakeSpec(memory.view(), 4, 50));
  const Memory back = Decoded(model, *dense, frame, 100);
  for (const auto& codec : {fixed, coarse}) {
    const Memory again = Decoded(model, *codec, frame, 100);
    again.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      ASSERT_EQ(again.Get(layer, stream, token, head, e), back.Get(layer, stream, token, head, e));
    });
  }
  Decoded(model, *dense, other, 100);
}

TEST(DenseTest, OptionsOutOfRangeAreRefused) {
  const auto model = MakeModel(KvShape());
  for (const auto& [ratio, exempt] : std::vector<std::pair<uint32_t, uint32_t>>{{7, 0}, {97, 0}, {20, 4}}) {
    const auto codec = CreateTransform(model, SharedProfile(), ratio, "dense", exempt);
    EXPECT_EQ(CodeOf(codec.status()), KVT_ERR_INVALID_ARGUMENT) << ratio << " " << exempt;
  }
  EXPECT_EQ(CodeOf(CreateTransform(model, SharedProfile(), 16, "transform", 1).status()),
            KVT_ERR_INVALID_ARGUMENT);
}

TEST(DenseTest, FlippedBytesAreRefused) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 60);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeDense(model, 16);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 40));
  Memory back(model, Layout::kDense, KVT_ELEMENT_F16, 60);
  const auto header = ParseFrame(Bytes(frame));
  ASSERT_TRUE(header.ok());
  for (size_t i = 0; i < frame.size(); i += i < header->payload_offset + 64 ? 1 : 13) {
    auto broken = frame;
    broken[i] ^= 0x41;
    EXPECT_FALSE(codec->Decode(Bytes(broken), MakeSpec(back.view()), back.view()).ok()) << i;
  }
}

// With checksums made right again it is refused or decodes to finite rows; sanitizers see that nothing else
// is read or written.
TEST(DenseTest, HostileSegmentsAreRefusedOrDecoded) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 60);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeDense(model, 16);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 40));
  Memory back(model, Layout::kDense, KVT_ELEMENT_F16, 60);
  const auto header = ParseFrame(Bytes(frame));
  ASSERT_TRUE(header.ok());
  const Segment& segment = header->segments[0];
  int refused = 0;
  for (uint64_t i = 0; i < segment.stored_length; ++i) {
    auto broken = frame;
    const uint64_t begin = header->payload_offset + segment.offset;
    broken[begin + i] ^= 0x41;
    FrameHeader resealed = *header;
    resealed.segments[0].checksum = kernels::Hash(broken.data() + begin, segment.stored_length);
    broken = WithHeader(broken, resealed, header->payload_offset);
    const auto decoded = codec->Decode(Bytes(broken), MakeSpec(back.view()), back.view());
    if (!decoded.ok()) {
      ASSERT_EQ(CodeOf(decoded.status()), KVT_ERR_CORRUPT) << decoded.status();
      ++refused;
      continue;
    }
    for (uint64_t token = 0; token < 60; ++token) ASSERT_TRUE(std::isfinite(back.Get(0, 0, token, 0, 0)));
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace kvt::test
