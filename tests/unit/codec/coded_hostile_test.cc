// Frames of the codecs whose segments are entropy coded, with bytes that no encoder wrote and checksums made
// right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/codec/codec_fixture.h"
#include "unit/codec/reseal.h"

namespace kvt::test {
namespace {

using testing::HasSubstr;

class CodedHostileTest : public testing::TestWithParam<const char*> {
 protected:
  CodedHostileTest()
      : model_(MakeModel({.heads = 2, .k_dim = 8, .v_dim = 12})),
        codec_(MakeCodec(model_, GetParam())),
        source_(model_, Layout::kDense, KVT_ELEMENT_F16, 320),
        target_(model_, Layout::kDense, KVT_ELEMENT_F16, 320) {
    source_.Fill(1);
    const FrameSpec spec = MakeSpec(source_.view(), 1, 2);
    frame_ = Encode(*codec_, source_.view(), spec);
    header_ = *ParseFrame(Bytes(frame_));
    const auto coarse = Encode(*MakeCodec(model_, "nested_coarse"), source_.view(), spec);
    EXPECT_TRUE(codec_->Decode(Bytes(coarse), spec, target_.view()).ok());
  }

  // Decodes a frame with checksums made right, of segments whose lengths are those of `lengths` or as before.
  Status Decode(const std::vector<uint8_t>& frame, const std::vector<uint64_t>& lengths = {}) {
    FrameHeader header = header_;
    for (size_t i = 0; i < header.segments.size(); ++i) {
      if (!lengths.empty()) header.segments[i].stored_length = lengths[i];
      const Bytes stored = header.Stored(Bytes(frame), header.segments[i]);
      header.segments[i].checksum = kernels::Hash(stored.data(), stored.size());
    }
    const std::vector<uint8_t> resealed = WithHeader(frame, header, header_.payload_offset);
    return codec_->Decode(Bytes(resealed), MakeSpec(target_.view()), target_.view()).status();
  }
  uint8_t* Payload(std::vector<uint8_t>* frame, const Segment& segment) const {
    return frame->data() + header_.payload_offset + segment.offset;
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Codec> codec_;
  Memory source_, target_;
  std::vector<uint8_t> frame_;
  FrameHeader header_;
};

TEST_P(CodedHostileTest, AWrongChecksumComesBeforeWhatFollowsFromIt) {
  ASSERT_TRUE(Decode(frame_).ok());
  std::vector<uint8_t> frame = frame_;
  Payload(&frame, header_.segments[1])[header_.segments[1].stored_length / 2] ^= 0x40;
  const Status status = codec_->Decode(Bytes(frame), MakeSpec(target_.view()), target_.view()).status();
  EXPECT_EQ(CodeOf(status), KVT_ERR_CORRUPT);
  EXPECT_THAT(std::string(status.message()), HasSubstr("checksum"));
}

TEST_P(CodedHostileTest, DamageDoesNoHarm) {
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> frame = frame_;
    const Segment& segment = header_.segments[random() % header_.segments.size()];
    for (uint32_t i = 0; i < 1 + random() % 3; ++i) {
      const size_t front = std::min<uint64_t>(200, segment.stored_length);
      const size_t at = random() % (round % 2 == 0 ? front : segment.stored_length);
      Payload(&frame, segment)[at] = static_cast<uint8_t>(random());
    }
    const Status status = Decode(frame);
    ASSERT_TRUE(status.ok() || CodeOf(status) == KVT_ERR_CORRUPT || CodeOf(status) == KVT_ERR_MISMATCH)
        << status;
    refused += !status.ok();
  }
  EXPECT_GT(refused, 500);
}

TEST_P(CodedHostileTest, NoiseDoesNoHarm) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint8_t> frame = frame_;
    for (const Segment& segment : header_.segments)
      for (uint64_t i = round % 4 * 30; i < segment.stored_length; ++i)
        Payload(&frame, segment)[i] = static_cast<uint8_t>(random());
    ASSERT_FALSE(Decode(frame).ok());
  }
}

// A segment that lacks its last bytes ends in something that is named.
TEST_P(CodedHostileTest, ShortSegmentsAreRefused) {
  for (uint64_t less = 1; less < 60; ++less) {
    std::vector<uint64_t> lengths;
    for (const Segment& segment : header_.segments) lengths.push_back(segment.stored_length);
    lengths.back() -= less;
    if (AlignFrame(header_.segments.back().offset + lengths.back()) != header_.payload_length) break;
    std::vector<uint8_t> frame = frame_;
    std::fill(Payload(&frame, header_.segments.back()) + lengths.back(), frame.data() + frame.size(), 0);
    ASSERT_EQ(CodeOf(Decode(frame, lengths)), KVT_ERR_CORRUPT) << less;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, CodedHostileTest,
                         testing::Values("nested_coarse", "nested_rest", "cachegen"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace kvt::test
