// Codec dense without its trellis: what it loses, that a frame says it, and flags that are none.
#include "unit/codec/reseal.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

constexpr uint64_t kTokens = 700;

class DenseScalarTest : public testing::Test {
 protected:
  void SetUp() override { FillCorrelated(*model_, &memory_, 99); }

  std::shared_ptr<const Codec> Make(uint32_t ratio, uint32_t quantiser) const {
    auto codec = CreateTransform(model_, SharedProfile(), ratio, "dense", 0, quantiser);
    EXPECT_TRUE(codec.ok()) << codec.status();
    return codec.ok() ? *codec : nullptr;
  }
  Memory Decoded(const Codec& codec, const std::vector<uint8_t>& frame) const {
    Memory memory(model_, Layout::kDense, KVT_ELEMENT_F16, kTokens);
    const auto decoded = codec.Decode(Bytes(frame), MakeSpec(memory.view()), memory.view());
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return memory;
  }
  double Lost(const Codec& codec, const std::vector<uint8_t>& frame) const {
    return LostPart(*model_, memory_, Decoded(codec, frame), 0, kTokens);
  }
  // A frame whose first segment has another byte of flags, with checksums made right again.
  static std::vector<uint8_t> WithFlags(const std::vector<uint8_t>& frame, uint8_t flags) {
    FrameHeader header = *ParseFrame(Bytes(frame));
    auto changed = frame;
    Segment& segment = header.segments[0];
    uint8_t* stored = changed.data() + header.payload_offset + segment.offset;
    stored[1] = flags;
    segment.checksum = kernels::Hash(stored, segment.stored_length);
    return WithHeader(changed, header, header.payload_offset);
  }

  const std::shared_ptr<const Model> model_ = MakeModel(KvShape());
  Memory memory_{model_, Layout::kDense, KVT_ELEMENT_F16, kTokens};
};

TEST_F(DenseScalarTest, LosesMoreThanTheTrellisInTheSameBytes) {
  struct Point {
    double bytes, log_lost;
  };
  const auto point = [&](uint32_t ratio, uint32_t quantiser) {
    const auto codec = Make(ratio, quantiser);
    const auto frame = Encode(*codec, memory_.view(), MakeSpec(memory_.view()));
    return Point{static_cast<double>(frame.size()), std::log(Lost(*codec, frame))};
  };
  for (const uint32_t ratio : {16u, 24u, 32u}) {
    const Point scalar = point(ratio, KVT_QUANTISER_SCALAR);
    // What the trellis loses in as many bytes, between two of its ratios.
    Point more = point(8, KVT_QUANTISER_TRELLIS), less = more;
    for (uint32_t next = 9; less.bytes > scalar.bytes; ++next) {
      more = less;
      less = point(next, KVT_QUANTISER_TRELLIS);
    }
    const double part = (more.bytes - scalar.bytes) / (more.bytes - less.bytes);
    EXPECT_GT(scalar.log_lost, more.log_lost + part * (less.log_lost - more.log_lost) + 0.05) << ratio;
    const double bytes = point(ratio, KVT_QUANTISER_TRELLIS).bytes;
    EXPECT_NEAR(scalar.bytes, bytes, 0.15 * bytes) << ratio;
  }
}

TEST_F(DenseScalarTest, FramesSayWhichAndAnyDecoderReadsBoth) {
  const auto trellis = Make(16, 0), scalar = Make(16, KVT_QUANTISER_SCALAR);
  const std::vector<int8_t> importance(kTokens, -2);
  FrameSpec spec = MakeSpec(memory_.view(), 4, 100);
  spec.importance = importance.data();
  for (const auto& codec : {trellis, scalar}) {
    const auto frame = Encode(*codec, memory_.view(), spec);
    const auto header = *ParseFrame(Bytes(frame));
    EXPECT_EQ(frame[header.payload_offset + 1], codec == scalar ? 3 : 1);
    const Memory first = Decoded(*trellis, frame), second = Decoded(*scalar, frame);
    first.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      ASSERT_EQ(first.Get(layer, stream, token, head, e), second.Get(layer, stream, token, head, e));
    });
    EXPECT_LT(Lost(*trellis, frame), 0.05);
  }
}

TEST_F(DenseScalarTest, UnknownFlagsAreRefused) {
  const auto codec = Make(16, KVT_QUANTISER_SCALAR);
  const auto frame = Encode(*codec, memory_.view(), MakeSpec(memory_.view()));
  Memory back(model_, Layout::kDense, KVT_ELEMENT_F16, kTokens);
  for (const uint8_t flags : {4, 6, 128, 255}) {
    const auto decoded = codec->Decode(Bytes(WithFlags(frame, flags)), MakeSpec(back.view()), back.view());
    EXPECT_EQ(CodeOf(decoded.status()), KVT_ERR_CORRUPT);
    EXPECT_NE(decoded.status().message().find(absl::StrCat("flags ", int{flags})), std::string::npos)
        << decoded.status();
  }
  // A scalar frame that says it is none, or the other way round, is refused or gives finite rows.
  const auto other = Encode(*Make(16, KVT_QUANTISER_TRELLIS), memory_.view(), MakeSpec(memory_.view()));
  for (const auto& changed : {WithFlags(frame, 0), WithFlags(other, 2)}) {
    const auto decoded = codec->Decode(Bytes(changed), MakeSpec(back.view()), back.view());
    if (!decoded.ok()) {
      EXPECT_EQ(CodeOf(decoded.status()), KVT_ERR_CORRUPT) << decoded.status();
      continue;
    }
    for (uint64_t token = 0; token < kTokens; ++token)
      ASSERT_TRUE(std::isfinite(back.Get(0, 0, token, 0, 0)));
  }
}

TEST_F(DenseScalarTest, OtherValuesAndCodecsAreRefused) {
  const auto refused = [&](const std::string& name, uint32_t quantiser) {
    const auto codec = CreateTransform(model_, SharedProfile(), 16, name, 0, quantiser);
    EXPECT_EQ(CodeOf(codec.status()), KVT_ERR_INVALID_ARGUMENT);
    return std::string(codec.status().message());
  };
  EXPECT_EQ(refused("dense", 3), "codec dense: quantiser is 3, expected 0 to 2");
  EXPECT_EQ(refused("transform", 1), "codec transform: quantiser is 1, expected 0");
  EXPECT_EQ(refused("kvtc", 2), "codec kvtc: quantiser is 2, expected 0");
}

}  // namespace
}  // namespace kvt::test
