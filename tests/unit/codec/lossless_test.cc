// The lossless codec: every bit comes back, in fewer bytes where rows allow it, and never in many more.
#include "codec/lossless/lossless.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "unit/codec/codec_fixture.h"
#include "unit/codec/reseal.h"

namespace kvt::test {
namespace {

using testing::HasSubstr;

constexpr uint32_t kElements[] = {KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16, KVT_ELEMENT_FP8_E4M3,
                                  KVT_ELEMENT_FP8_E5M2};

// A model whose keys are turned.
std::shared_ptr<const Model> TurnedModel(uint32_t element, uint32_t style, uint32_t dim = 32,
                                         uint32_t heads = 2) {
  kvt_model_options_t options = {};
  options.struct_size = sizeof options;
  options.layout = KVT_LAYOUT_KV;
  options.model_id = reinterpret_cast<const uint8_t*>("turned");
  options.model_id_len = 6;
  options.layers = 2;
  options.kv_heads = heads;
  options.k_dim = options.v_dim = dim;
  options.element = element;
  options.rope_style = style;
  options.rope_dims = dim / 2;
  options.rope_offset = dim / 4;
  options.rope_base = 10000;
  options.rope_magnitude = 1;
  return *Model::Create(options);
}

void ExpectSameBits(const Memory& a, const Memory& b, uint32_t element) {
  a.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    ASSERT_EQ(std::memcmp(a.At(layer, stream, token, head, e), b.At(layer, stream, token, head, e),
                          ElementBytes(element)),
              0)
        << "layer " << layer << " stream " << stream << " token " << token << " element " << e;
  });
}

// Rows whose means turn with the position, as keys' do.
void FillTurned(const Model& model, Memory* memory) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  const Rope& rope = model.rope();
  memory->ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    float mean = e % 5 == 0 ? 2.0f : 0.0f;
    const uint32_t place = e - rope.offset;
    if (stream == 0 && e >= rope.offset && place < rope.dims) {
      const double angle = static_cast<double>(token) * std::pow(rope.base, -2.0 * (place / 2) / rope.dims);
      mean = 6 * static_cast<float>(place % 2 == 0 ? std::cos(angle) : std::sin(angle));
    }
    memory->Set(layer, stream, token, head, e, mean + 0.5f * normal(random));
  });
}

// Random bits, rows of one value, and ordinary rows; lengths around blocks and none of them whole.
TEST(LosslessTest, EveryBitOfEveryElementTypeComesBack) {
  for (const uint32_t element : kElements) {
    for (const Layout layout : {Layout::kDense, Layout::kPaged, Layout::kStrided}) {
      for (const uint64_t tokens : {1u, 15u, 33u, 300u}) {
        const auto model = MakeModel({.k_dim = 24, .v_dim = 7, .element = element});
        const auto codec = MakeCodec(model, "lossless");
        for (const int kind : {0, 1, 2}) {
          if (kind == 2 && ElementBytes(element) == 1) continue;
          Memory source(model, layout, element, tokens, 5);
          if (kind == 1) source.FillBits(element);
          if (kind == 2) source.Fill(element);
          const View view = source.view();
          CodecReport report;
          const std::vector<uint8_t> frame = Encode(*codec, view, MakeSpec(view, 3, 3), &report);
          EXPECT_EQ(report.nonfinite, 0u);
          EXPECT_TRUE(VerifyFrame(Bytes(frame), nullptr).ok());
          Memory target(model, Layout::kDense, element, tokens, 5);
          const auto decoded = codec->Decode(Bytes(frame), MakeSpec(target.view()), target.view());
          ASSERT_TRUE(decoded.ok()) << decoded.status();
          EXPECT_EQ(decoded->frame_bytes, frame.size());
          ExpectSameBits(source, target, element);
        }
      }
    }
  }
}

TEST(LosslessTest, SpecialValuesAmongOrdinaryOnesComeBack) {
  for (const uint32_t element : {KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16}) {
    const auto model = MakeModel({.k_dim = 64, .v_dim = 64, .element = element});
    const auto codec = MakeCodec(model, "lossless");
    Memory source(model, Layout::kDense, element, 400);
    source.Fill(3);
    std::mt19937 random(2);
    source.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      if (random() % 50 != 0) return;
      uint8_t* at = source.At(layer, stream, token, head, e);
      for (size_t i = 0; i < ElementBytes(element); ++i) at[i] = static_cast<uint8_t>(random());
      if (random() % 2 == 0) at[ElementBytes(element) - 1] |= 0x7f;
      if (random() % 4 == 0) std::memset(at, 0, ElementBytes(element) - 1);
    });
    const View view = source.view();
    const std::vector<uint8_t> frame = Encode(*codec, view, MakeSpec(view));
    Memory target(model, Layout::kPaged, element, 400);
    ASSERT_TRUE(codec->Decode(Bytes(frame), MakeSpec(target.view()), target.view()).ok());
    ExpectSameBits(source, target, element);
  }
}

TEST(LosslessTest, OrdinaryRowsGetSmallerAndTurnedKeysMore) {
  for (const uint32_t element : {KVT_ELEMENT_F16, KVT_ELEMENT_BF16}) {
    uint64_t plain_keys = 0;
    for (const uint32_t style : {KVT_ROPE_NONE, KVT_ROPE_INTERLEAVED}) {
      const auto shape = TurnedModel(element, KVT_ROPE_INTERLEAVED);
      const auto model = style == KVT_ROPE_NONE ? MakeModel({.k_dim = 32, .v_dim = 32, .element = element})
                                                : TurnedModel(element, style);
      Memory source(model, Layout::kDense, element, 1500);
      FillTurned(*shape, &source);
      const auto codec = MakeCodec(model, "lossless");
      const std::vector<uint8_t> frame = Encode(*codec, source.view(), MakeSpec(source.view()));
      const auto header = ParseFrame(Bytes(frame));
      ASSERT_TRUE(header.ok());
      const Segment& keys = header->segments[0];
      EXPECT_GT(keys.decoded_length, keys.stored_length * 115 / 100);
      if (style == KVT_ROPE_NONE) plain_keys = keys.stored_length;
      if (style != KVT_ROPE_NONE) {
        EXPECT_LT(keys.stored_length, plain_keys * 98 / 100);
      }
      Memory target(model, Layout::kDense, element, 1500);
      ASSERT_TRUE(codec->Decode(Bytes(frame), MakeSpec(target.view()), target.view()).ok());
      ExpectSameBits(source, target, element);
    }
  }
}

TEST(LosslessTest, HalfSplitAndManyChunksComeBack) {
  const auto model = TurnedModel(KVT_ELEMENT_F16, KVT_ROPE_HALF_SPLIT, 8, 1);
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 9001);
  FillTurned(*model, &source);
  const auto codec = MakeCodec(model, "lossless");
  const std::vector<uint8_t> frame = Encode(*codec, source.view(), MakeSpec(source.view()));
  Memory target(model, Layout::kDense, KVT_ELEMENT_F16, 9001);
  ASSERT_TRUE(codec->Decode(Bytes(frame), MakeSpec(target.view()), target.view()).ok());
  ExpectSameBits(source, target, KVT_ELEMENT_F16);
}

// Random bits cannot be coded: four bytes for a chunk are all that is added.
TEST(LosslessTest, NeverLargerThanRawAndItsLengths) {
  for (const uint32_t element : kElements) {
    const auto model = MakeModel({.element = element});
    Memory source(model, Layout::kDense, element, 700);
    source.FillBits(1);
    const std::vector<uint8_t> frame =
        Encode(*MakeCodec(model, "lossless"), source.view(), MakeSpec(source.view()));
    const auto header = ParseFrame(Bytes(frame));
    ASSERT_TRUE(header.ok());
    for (const Segment& segment : header->segments)
      EXPECT_LE(segment.stored_length, segment.decoded_length + 4);
  }
}

TEST(LosslessTest, ALayerDecodesAlone) {
  const auto model = TurnedModel(KVT_ELEMENT_F16, KVT_ROPE_INTERLEAVED);
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 600);
  FillTurned(*model, &source);
  const auto codec = MakeCodec(model, "lossless");
  const std::vector<uint8_t> frame = Encode(*codec, source.view(), MakeSpec(source.view()));
  Memory target(model, Layout::kDense, KVT_ELEMENT_F16, 600);
  FrameSpec spec = MakeSpec(target.view());
  spec.layer_begin = 1;
  const auto decoded = codec->Decode(Bytes(frame), spec, target.view());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->segments, 2u);
  source.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    const bool same = std::memcmp(source.At(layer, stream, token, head, e),
                                  target.At(layer, stream, token, head, e), 2) == 0;
    const uint8_t* at = target.At(layer, stream, token, head, e);
    ASSERT_TRUE(layer == 1 ? same : at[0] == 0xcd && at[1] == 0xcd);
  });
}

// A view of another element type is converted as raw's rows are.
TEST(LosslessTest, OtherViewsAreConverted) {
  const auto model = MakeModel({.k_dim = 40, .v_dim = 8});
  Memory source(model, Layout::kDense, KVT_ELEMENT_F32, 200);
  source.Fill(4);
  std::vector<std::vector<uint8_t>> bits;
  for (const char* name : {"raw", "lossless"}) {
    const auto codec = MakeCodec(model, name);
    const std::vector<uint8_t> frame = Encode(*codec, source.view(), MakeSpec(source.view()));
    Memory target(model, Layout::kStrided, KVT_ELEMENT_BF16, 200);
    ASSERT_TRUE(codec->Decode(Bytes(frame), MakeSpec(target.view()), target.view()).ok());
    bits.emplace_back();
    target.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      const uint8_t* at = target.At(layer, stream, token, head, e);
      bits.back().insert(bits.back().end(), at, at + 2);
    });
  }
  EXPECT_EQ(bits[0], bits[1]);
}

class LosslessHostileTest : public testing::Test {
 protected:
  LosslessHostileTest()
      : model_(TurnedModel(KVT_ELEMENT_F16, KVT_ROPE_INTERLEAVED, 8, 1)),
        codec_(MakeCodec(model_, "lossless")),
        source_(model_, Layout::kDense, KVT_ELEMENT_F16, 320),
        target_(model_, Layout::kDense, KVT_ELEMENT_F16, 320) {
    FillTurned(*model_, &source_);
    frame_ = Encode(*codec_, source_.view(), MakeSpec(source_.view()));
    header_ = *ParseFrame(Bytes(frame_));
  }

  // Decodes a frame with checksums made right.
  Status Decode(std::vector<uint8_t> frame) {
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

TEST_F(LosslessHostileTest, AWrongChecksumComesBeforeWhatFollowsFromIt) {
  std::vector<uint8_t> frame = frame_;
  frame[header_.payload_offset + 4] ^= 0x40;
  const Status status = codec_->Decode(Bytes(frame), MakeSpec(target_.view()), target_.view()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("checksum"));
}

// The fields at the front of the first chunk: what is wrong is named.
TEST_F(LosslessHostileTest, FieldsMustHold) {
  ASSERT_TRUE(Decode(frame_).ok());
  const auto with = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> frame = frame_;
    frame[header_.payload_offset + at] = value;
    const Status status = Decode(frame);
    EXPECT_EQ(CodeOf(status), KVT_ERR_CORRUPT) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(with(0, 0xff), HasSubstr("lossless"));
  EXPECT_THAT(with(3, 0xff), HasSubstr("a chunk of"));
  EXPECT_THAT(with(4, 9), HasSubstr("number 9 for its states"));
  EXPECT_THAT(with(5, 255), HasSubstr("turns"));
}

TEST_F(LosslessHostileTest, DamageDoesNoHarm) {
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> frame = frame_;
    const Segment& segment = header_.segments[random() % header_.segments.size()];
    for (uint32_t i = 0; i < 1 + random() % 3; ++i) {
      const size_t at =
          random() % (round % 2 == 0 ? std::min<uint64_t>(90, segment.stored_length) : segment.stored_length);
      frame[header_.payload_offset + segment.offset + at] = static_cast<uint8_t>(random());
    }
    const Status status = Decode(frame);
    ASSERT_TRUE(status.ok() || CodeOf(status) == KVT_ERR_CORRUPT) << status;
    refused += !status.ok();
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace kvt::test
