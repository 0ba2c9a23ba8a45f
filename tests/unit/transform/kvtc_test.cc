// Codec kvtc: plans, DEFLATE, round trips, and bytes that are not its own.
#include "codec/transform/kvtc.h"

#include <gmock/gmock.h>

#include "codec/entropy/deflate.h"
#include "unit/codec/reseal.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kTokens = 500;

std::shared_ptr<const Codec> MakeKvtc(const std::shared_ptr<const Model>& model, uint32_t ratio,
                                      const std::string& profile = SharedProfile()) {
  auto codec = CreateTransform(model, profile, ratio, "kvtc");
  EXPECT_TRUE(codec.ok()) << codec.status();
  return codec.ok() ? *codec : nullptr;
}

Memory Decoded(const std::shared_ptr<const Model>& model, const Codec& codec,
               const std::vector<uint8_t>& frame, uint64_t tokens, uint64_t first_position = 0,
               Layout layout = Layout::kDense, uint32_t element = KVT_ELEMENT_F16) {
  Memory memory(model, layout, element, tokens, first_position);
  const auto decoded = codec.Decode(Bytes(frame), MakeSpec(memory.view()), memory.view());
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return memory;
}

TEST(DeflateTest, BytesComeBackAndNothingElseDoes) {
  std::mt19937 random(1);
  for (const size_t size : {1u, 2u, 100u, 5000u}) {
    std::vector<uint8_t> bytes(size), back(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 3);
    const std::vector<uint8_t> deflated = Deflate(Bytes(bytes));
    ASSERT_EQ(deflated.empty(), size < 100) << size;
    if (deflated.empty()) continue;
    ASSERT_TRUE(Inflate(Bytes(deflated), MutableBytes(back.data(), size)).ok());
    EXPECT_EQ(back, bytes);
    EXPECT_EQ(CodeOf(Inflate(Bytes(deflated), MutableBytes(back.data(), size - 1))), KVT_ERR_CORRUPT);
    back.resize(size + 1);
    EXPECT_EQ(CodeOf(Inflate(Bytes(deflated), MutableBytes(back.data(), size + 1))), KVT_ERR_CORRUPT);
    for (size_t cut = 0; cut < deflated.size(); ++cut)
      ASSERT_FALSE(Inflate(Bytes(deflated).first(cut), MutableBytes(back.data(), size)).ok());
    std::vector<uint8_t> longer = deflated;
    longer.push_back(0);
    EXPECT_EQ(CodeOf(Inflate(Bytes(longer), MutableBytes(back.data(), size))), KVT_ERR_CORRUPT);
  }
}

TEST(DeflateTest, NoiseIsNotShorter) {
  std::mt19937 random(2);
  std::vector<uint8_t> noise(3000);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  EXPECT_TRUE(Deflate(Bytes(noise)).empty());
  EXPECT_TRUE(Deflate({}).empty());
}

uint64_t Cost(const std::vector<KvtcBlock>& blocks) {
  uint64_t bits = 0;
  for (const KvtcBlock& block : blocks)
    if (block.type != KvtcType::kNone) bits += kKvtcBlockBits + block.size * KvtcBits(block.type);
  return bits;
}

TEST(KvtcPlanTest, BlocksFitTheBudgetAndFollowEachOther) {
  std::vector<float> deviations;
  for (int i = 0; i < 1930; ++i) deviations.push_back(100 * std::exp(-static_cast<float>(i) / 150));
  for (const uint64_t budget : {0u, 31u, 64u, 1000u, 3000u, 100000u}) {
    const std::vector<KvtcBlock> blocks = PlanKvtc(deviations, budget);
    EXPECT_LE(Cost(blocks), budget);
    uint32_t next = 0;
    for (const KvtcBlock& block : blocks) {
      EXPECT_EQ(block.first, next);
      next += block.size;
    }
    EXPECT_LE(next, deviations.size());
    EXPECT_EQ(blocks.empty(), budget < 64);
    if (budget == 3000) {
      EXPECT_GT(Cost(blocks), budget * 9 / 10);
      // What varies more gets wider codes.
      for (size_t i = 1; i < blocks.size(); ++i) EXPECT_GE(blocks[i - 1].type, blocks[i].type) << i;
    }
  }
}

// One component far above the others: it stands alone, so that it does not coarsen its neighbours.
TEST(KvtcPlanTest, BlocksOfOneComponentAreUsedWhereTheyPay) {
  std::vector<float> deviations;
  for (int i = 0; i < 64; ++i)
    deviations.push_back(i < 16 ? std::pow(8.0f, static_cast<float>(20 - i)) : 1e-3f);
  const std::vector<KvtcBlock> blocks = PlanKvtc(deviations, 2000);
  ASSERT_FALSE(blocks.empty());
  EXPECT_EQ(blocks.front().size, 1u);
}

struct Case {
  uint64_t tokens;
  uint32_t exempt_first, exempt_last;
  uint32_t element;
  Layout layout;
};

class KvtcRoundTripTest : public testing::TestWithParam<Case> {};

TEST_P(KvtcRoundTripTest, RoundTrip) {
  const Case& c = GetParam();
  KvShape shape;
  shape.element = c.element;
  const auto model = MakeModel(shape);
  const std::string profile = c.element == KVT_ELEMENT_F16 ? SharedProfile() : MakeProfile(model);
  Memory memory(model, c.layout, c.element, c.tokens, 300);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeKvtc(model, 8, profile);
  CodecReport report;
  const auto frame =
      Encode(*codec, memory.view(), MakeSpec(memory.view(), c.exempt_first, c.exempt_last), &report);
  EXPECT_EQ(report.segments, 6u);
  EXPECT_TRUE(VerifyFrame(Bytes(frame), nullptr).ok());
  const Memory back = Decoded(model, *codec, frame, c.tokens, 300, c.layout, c.element);
  const uint64_t first = std::min<uint64_t>(c.exempt_first, c.tokens);
  const uint64_t last = std::min<uint64_t>(c.exempt_last, c.tokens - first);
  back.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    const float was = memory.Get(layer, stream, token, head, e), is = back.Get(layer, stream, token, head, e);
    if (token < first || token >= c.tokens - last) {
      ASSERT_EQ(was, is);
    } else {
      ASSERT_NEAR(was, is, 8);
    }
  });
  if (c.tokens > 100) {
    EXPECT_LT(LostPart(*model, memory, back, 0, c.tokens), 0.05);
  }
}

INSTANTIATE_TEST_SUITE_P(All, KvtcRoundTripTest,
                         testing::Values(Case{500, 4, 128, KVT_ELEMENT_F16, Layout::kDense},
                                         Case{300, 0, 0, KVT_ELEMENT_F16, Layout::kPaged},
                                         Case{300, 4, 0, KVT_ELEMENT_F16, Layout::kStrided},
                                         Case{257, 0, 0, KVT_ELEMENT_F32, Layout::kDense},
                                         Case{260, 1, 2, KVT_ELEMENT_BF16, Layout::kDense},
                                         Case{1, 0, 0, KVT_ELEMENT_F16, Layout::kDense},
                                         Case{1, 1, 0, KVT_ELEMENT_F16, Layout::kDense},
                                         Case{30, 4, 128, KVT_ELEMENT_F16, Layout::kDense}));

TEST(KvtcTest, HigherRatiosAreSmallerAndLoseMore) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, kTokens);
  FillCorrelated(*model, &memory, 99);
  const auto raw = static_cast<double>(kTokens * 6 * 2 * (32 + 24) * 2);
  double lost_before = 0;
  size_t size_before = SIZE_MAX;
  for (const uint32_t ratio : {4u, 8u, 16u, 32u, 96u}) {
    const auto codec = MakeKvtc(model, ratio);
    const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()));
    EXPECT_GT(raw / static_cast<double>(frame.size()), ratio * 0.85);
    const double lost = LostPart(*model, memory, Decoded(model, *codec, frame, kTokens), 0, kTokens);
    EXPECT_GE(lost, lost_before) << ratio;
    EXPECT_LE(frame.size(), size_before) << ratio;
    lost_before = lost;
    size_before = frame.size();
  }
}

// A segment says its blocks: any codec with the profile reads it.
TEST(KvtcTest, CodecsOfOtherRatiosAndKindsDecodeIt) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 90);
  FillCorrelated(*model, &memory, 99);
  const auto frame = Encode(*MakeKvtc(model, 8), memory.view(), MakeSpec(memory.view(), 2, 3));
  const Memory own = Decoded(model, *MakeKvtc(model, 8), frame, 90);
  for (const char* name : {"kvtc", "transform", "dense"}) {
    const auto other = CreateTransform(model, SharedProfile(), 32, name);
    ASSERT_TRUE(other.ok()) << other.status();
    const Memory back = Decoded(model, **other, frame, 90);
    back.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_EQ(own.Get(layer, stream, token, head, e), back.Get(layer, stream, token, head, e));
    });
  }
}

TEST(KvtcTest, PartOfTheLayersDecodesToTheSame) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 300);
  FillCorrelated(*model, &memory, 99);
  const auto codec = MakeKvtc(model, 16);
  const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view(), 4, 50));
  const Memory whole = Decoded(model, *codec, frame, 300);
  Memory part(model, Layout::kDense, KVT_ELEMENT_F16, 300);
  FrameSpec spec = MakeSpec(part.view());
  spec.layer_begin = 1;
  spec.layer_end = 3;
  const auto decoded = codec->Decode(Bytes(frame), spec, part.view());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  part.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
    if (layer == 1 || layer == 2) {
      // The matrix product's sums may run in another order.
      ASSERT_NEAR(part.Get(layer, stream, token, head, e), whole.Get(layer, stream, token, head, e), 0.02);
    } else {
      ASSERT_EQ(*part.At(layer, stream, token, head, e), 0xcd);
    }
  });
}

TEST(KvtcTest, EqualRowsNonfiniteOnesAndSubnormalsGiveFiniteRows) {
  const auto model = MakeModel(KvShape());
  for (const float value : {0.0f, 3.0f, 65504.0f, 6e-8f, NAN, -INFINITY}) {
    Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 40);
    memory.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      memory.Set(layer, stream, token, head, e, value);
    });
    const auto codec = MakeKvtc(model, 16);
    CodecReport report;
    const auto frame = Encode(*codec, memory.view(), MakeSpec(memory.view()), &report);
    EXPECT_EQ(report.nonfinite, std::isfinite(value) ? 0u : 40u * 6 * 2 * (32 + 24));
    const Memory back = Decoded(model, *codec, frame, 40);
    back.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_TRUE(std::isfinite(back.Get(layer, stream, token, head, e)));
    });
  }
}

class KvtcHostileTest : public testing::Test {
 protected:
  KvtcHostileTest()
      : model_(MakeModel(KvShape())),
        codec_(MakeKvtc(model_, 16)),
        source_(model_, Layout::kDense, KVT_ELEMENT_F16, 200),
        target_(model_, Layout::kDense, KVT_ELEMENT_F16, 200) {
    FillCorrelated(*model_, &source_, 99);
    frame_ = Encode(*codec_, source_.view(), MakeSpec(source_.view()));
    header_ = *ParseFrame(Bytes(frame_));
  }

  Status Decode(const std::vector<uint8_t>& frame) {
    FrameHeader header = header_;
    for (Segment& segment : header.segments) {
      const Bytes stored = header_.Stored(Bytes(frame), segment);
      segment.checksum = kernels::Hash(stored.data(), stored.size());
    }
    const std::vector<uint8_t> resealed = WithHeader(frame, header, header_.payload_offset);
    return codec_->Decode(Bytes(resealed), MakeSpec(target_.view()), target_.view()).status();
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Codec> codec_;
  Memory source_, target_;
  std::vector<uint8_t> frame_;
  FrameHeader header_;
};

TEST_F(KvtcHostileTest, FieldsMustHold) {
  ASSERT_TRUE(Decode(frame_).ok());
  const auto with = [&](size_t at, std::vector<uint8_t> values) {
    std::vector<uint8_t> frame = frame_;
    std::copy(values.begin(), values.end(),
              frame.begin() + static_cast<int64_t>(header_.payload_offset + header_.segments[0].offset + at));
    const Status status = Decode(frame);
    EXPECT_EQ(CodeOf(status), KVT_ERR_CORRUPT) << status;
    return std::string(status.message());
  };
  const size_t blocks = LoadLe<uint16_t>(frame_.data() + header_.payload_offset);
  EXPECT_THAT(with(0, {0xff, 0xff}), HasSubstr("65535 blocks in"));
  EXPECT_THAT(with(2, {0x51}), HasSubstr("block 0 has type 5"));
  EXPECT_THAT(with(2, {0x17}), HasSubstr("number 7 for its size"));
  EXPECT_THAT(with(2 + blocks, {0xff, 0xff, 0xff, 0x7f}), HasSubstr("a chunk of 2147483647 bytes"));
  EXPECT_THAT(with(6 + blocks, {0, 0, 0, 0}), HasSubstr("deflate"));
}

TEST_F(KvtcHostileTest, DamageDoesNoHarm) {
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<uint8_t> frame = frame_;
    const Segment& segment = header_.segments[random() % header_.segments.size()];
    for (uint32_t i = 0; i < 1 + random() % 3; ++i) {
      const size_t most =
          round % 2 == 0 ? std::min<uint64_t>(60, segment.stored_length) : segment.stored_length;
      frame[header_.payload_offset + segment.offset + random() % most] = static_cast<uint8_t>(random());
    }
    const Status status = Decode(frame);
    ASSERT_TRUE(status.ok() || CodeOf(status) == KVT_ERR_CORRUPT) << status;
    refused += !status.ok();
  }
  EXPECT_GT(refused, 500);
  target_.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
    ASSERT_TRUE(std::isfinite(target_.Get(layer, stream, token, head, e)));
  });
}

TEST(KvtcTest, RatiosOutsideOfItsRangeAreRefused) {
  const auto model = MakeModel(KvShape());
  for (const uint32_t ratio : {3u, 97u}) {
    const Status status = CreateTransform(model, SharedProfile(), ratio, "kvtc").status();
    EXPECT_EQ(CodeOf(status), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected 4 to 96"));
  }
  EXPECT_EQ(CodeOf(CreateTransform(model, SharedProfile(), 16, "kvtc", KVT_EXEMPT_INT8).status()),
            KVT_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kvt::test
