// Damaged and hostile frames: each is refused with its own status, and none is read or written out of bounds
// (the sanitizer builds watch).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "codec/describe.h"
#include "unit/codec/codec_fixture.h"
#include "unit/codec/reseal.h"

namespace kvt::test {
namespace {

using testing::HasSubstr;

class HostileTest : public testing::TestWithParam<const char*> {
 protected:
  HostileTest()
      : model_(MakeModel({.layers = 2, .heads = 1, .k_dim = 9, .v_dim = 10})),
        codec_(MakeCodec(model_, GetParam(), 16, 8)),
        source_(model_, Layout::kDense, KVT_ELEMENT_F16, 5),
        target_(model_, Layout::kDense, KVT_ELEMENT_F16, 5) {
    source_.Fill(1);
    spec_ = MakeSpec(source_.view(), 1, 1);
    frame_ = Encode(*codec_, source_.view(), spec_);
    header_ = *ParseFrame(Bytes(frame_));
  }

  // The status of verifying the frame, and of decoding all of its layers.
  Status Verify(const std::vector<uint8_t>& frame) { return VerifyFrame(Bytes(frame), nullptr).status(); }
  Status Decode(const std::vector<uint8_t>& frame) {
    return codec_->Decode(Bytes(frame), spec_, target_.view()).status();
  }
  void ExpectBoth(const std::vector<uint8_t>& frame, kvt_status_t code, const char* text) {
    for (const Status& status : {Verify(frame), Decode(frame)}) {
      EXPECT_EQ(CodeOf(status), code) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
  }
  // The frame with a changed header, whose checksums are right.
  std::vector<uint8_t> Changed(const std::function<void(FrameHeader&)>& change) {
    FrameHeader header = header_;
    change(header);
    return WithHeader(frame_, header, header_.payload_offset);
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Codec> codec_;
  Memory source_, target_;
  FrameSpec spec_;
  std::vector<uint8_t> frame_;
  FrameHeader header_;
};

TEST_P(HostileTest, TheFrameItselfIsFine) {
  uint64_t checksums = 10;
  const auto summary = VerifyFrame(Bytes(frame_), &checksums);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(checksums, 10u + 2 + 4);
  EXPECT_EQ(summary->key, spec_.key);
  EXPECT_EQ(summary->namespace_digest, spec_.namespace_digest);
  EXPECT_EQ(summary->model, model_->fingerprint());
  EXPECT_EQ(summary->tokens, 5u);
  EXPECT_EQ(summary->segments, 4u);
  EXPECT_EQ(summary->layer_end, 2u);
  EXPECT_EQ(summary->frame_bytes, frame_.size());
  EXPECT_EQ(*FrameLength(Bytes(frame_).first(kFramePrefixBytes)), frame_.size());
  EXPECT_TRUE(Decode(frame_).ok());
  // A header that is written again is the same.
  EXPECT_EQ(Changed([](FrameHeader&) {}), frame_);
}

TEST_P(HostileTest, AFlippedBitAtEveryPlaceIsDetected) {
  for (size_t i = 0; i < frame_.size(); ++i) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> damaged = frame_;
      damaged[i] ^= flip;
      ASSERT_FALSE(Verify(damaged).ok()) << "byte " << i << " of " << frame_.size();
      ASSERT_FALSE(Decode(damaged).ok()) << "byte " << i << " of " << frame_.size();
      ASSERT_EQ(FrameLength(Bytes(damaged)).ok(), i >= kFramePrefixBytes);
      ASSERT_EQ(InspectFrame(Bytes(damaged)).ok(), i >= header_.payload_offset);
    }
  }
}

TEST_P(HostileTest, EveryTruncationIsDetected) {
  for (size_t size = 0; size < frame_.size(); ++size) {
    const std::vector<uint8_t> cut(frame_.begin(), frame_.begin() + static_cast<int64_t>(size));
    ASSERT_EQ(CodeOf(Verify(cut)), KVT_ERR_CORRUPT) << size;
    ASSERT_EQ(CodeOf(Decode(cut)), KVT_ERR_CORRUPT) << size;
  }
}

TEST_P(HostileTest, TrailingBytesAreRefused) {
  std::vector<uint8_t> longer = frame_;
  longer.push_back(0);
  ExpectBoth(longer, KVT_ERR_CORRUPT, "bytes, the prefix says");
  longer.resize(frame_.size() + 64);
  ExpectBoth(longer, KVT_ERR_CORRUPT, "bytes, the prefix says");
  // Even when the prefix says so.
  StoreLe<uint64_t>(longer.data() + 24, header_.payload_length + 64);
  Reseal(longer);
  ExpectBoth(longer, KVT_ERR_CORRUPT, "the segments end at");
}

TEST_P(HostileTest, AnotherVersionIsNotCorrupt) {
  std::vector<uint8_t> newer = frame_;
  newer[8] = 2;
  ExpectBoth(newer, KVT_ERR_VERSION, "format version is 2");
  Reseal(newer);
  ExpectBoth(newer, KVT_ERR_VERSION, "format version is 2");
  std::vector<uint8_t> flagged = frame_;
  flagged[12] = 3;
  Reseal(flagged);
  ExpectBoth(flagged, KVT_ERR_VERSION, "flags are 3, this library knows 1");
}

TEST_P(HostileTest, PrefixFieldsMustHold) {
  const auto with = [&](size_t at, uint64_t value, size_t width) {
    std::vector<uint8_t> frame = frame_;
    std::memcpy(frame.data() + at, &value, width);
    Reseal(frame);
    return frame;
  };
  ExpectBoth(with(0, 'X', 1), KVT_ERR_CORRUPT, "magic");
  ExpectBoth(with(20, 1, 4), KVT_ERR_CORRUPT, "reserved");
  ExpectBoth(with(40, 1, 8), KVT_ERR_CORRUPT, "reserved");
  ExpectBoth(with(16, 0, 4), KVT_ERR_CORRUPT, "header length is 0");
  ExpectBoth(with(16, 0xffffffff, 4), KVT_ERR_CORRUPT, "header length is 4294967295");
  ExpectBoth(with(16, 16u << 20, 4), KVT_ERR_CORRUPT, "the prefix says");
  ExpectBoth(with(24, header_.payload_length + 1, 8), KVT_ERR_CORRUPT, "not a multiple");
  ExpectBoth(with(24, UINT64_MAX - 63, 8), KVT_ERR_CORRUPT, "longer than");
  ExpectBoth(with(24, KVT_FRAME_BYTES_MAX, 8), KVT_ERR_CORRUPT, "longer than");
}

TEST_P(HostileTest, SegmentsMustAddUp) {
  ExpectBoth(Changed([](FrameHeader& h) { std::swap(h.segments[0], h.segments[2]); }), KVT_ERR_CORRUPT,
             "offset");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments.pop_back(); }), KVT_ERR_CORRUPT, "the segments end at");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments.clear(); }), KVT_ERR_CORRUPT, "empty");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[1].offset = UINT64_MAX - 63; }), KVT_ERR_CORRUPT,
             "offset");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[1].offset = 0; }), KVT_ERR_CORRUPT, "offset");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[0].stored_length = UINT64_MAX; }), KVT_ERR_CORRUPT,
             "goes beyond the payload");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[3].stored_length = h.payload_length; }), KVT_ERR_CORRUPT,
             "goes beyond the payload");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[0].stream = 2; }), KVT_ERR_CORRUPT, "stream is 2");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[0].layer_end = 3; }), KVT_ERR_CORRUPT, "layers [0, 3)");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[0].head_end = 9; }), KVT_ERR_CORRUPT, "heads [0, 9)");
  ExpectBoth(Changed([](FrameHeader& h) { h.segments[0].layer_begin = 1; }), KVT_ERR_CORRUPT, "");
}

TEST_P(HostileTest, HeaderFieldsMustHold) {
  ExpectBoth(Changed([](FrameHeader& h) { h.tokens = 0; }), KVT_ERR_CORRUPT, "tokens are 0");
  ExpectBoth(Changed([](FrameHeader& h) { h.tokens = UINT64_MAX; }), KVT_ERR_CORRUPT, "tokens are");
  ExpectBoth(Changed([](FrameHeader& h) { h.first_position = UINT64_MAX; }), KVT_ERR_CORRUPT, "overflow");
  ExpectBoth(Changed([](FrameHeader& h) { h.layer_end = h.layer_begin; }), KVT_ERR_CORRUPT, "layers");
  ExpectBoth(Changed([](FrameHeader& h) { h.head_end = 2000; }), KVT_ERR_CORRUPT, "heads");
  ExpectBoth(Changed([](FrameHeader& h) { h.streams = 3; }), KVT_ERR_CORRUPT, "streams are 3");
  ExpectBoth(Changed([](FrameHeader& h) { h.element = 9; }), KVT_ERR_CORRUPT, "element is 9");
  ExpectBoth(Changed([](FrameHeader& h) { h.codec = "\"},{"; }), KVT_ERR_CORRUPT, "codec's name");
  ExpectBoth(Changed([](FrameHeader& h) { h.codec = ""; }), KVT_ERR_CORRUPT, "codec's name");
  ExpectBoth(Changed([](FrameHeader& h) { h.profile = "short"; }), KVT_ERR_CORRUPT, "profile");
  ExpectBoth(Changed([](FrameHeader& h) { h.exempt_first = 4, h.exempt_last = 3; }), KVT_ERR_CORRUPT,
             "exempt");
}

// Whole for a holder of frames, but not for the one who decodes them.
TEST_P(HostileTest, DecodeRefusesWhatItDidNotAskFor) {
  const auto refuse = [&](const std::function<void(FrameHeader&)>& change, kvt_status_t code,
                          const char* text) {
    const std::vector<uint8_t> frame = Changed(change);
    EXPECT_TRUE(Verify(frame).ok()) << Verify(frame);
    const Status status = Decode(frame);
    EXPECT_EQ(CodeOf(status), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  refuse([](FrameHeader& h) { h.model[0] ^= 1; }, KVT_ERR_MISMATCH, "model fingerprint");
  refuse([](FrameHeader& h) { h.key.bytes[35] ^= 1; }, KVT_ERR_MISMATCH, "key");
  refuse([](FrameHeader& h) { h.namespace_digest[3] ^= 1; }, KVT_ERR_MISMATCH, "namespace digest");
  refuse([](FrameHeader& h) { h.first_position = 7; }, KVT_ERR_MISMATCH, "first position is 7, expected 0");
  refuse([](FrameHeader& h) { h.profile = std::string(16, '\x12'); }, KVT_ERR_PROFILE_MISSING,
         "12121212121212121212121212121212");
  refuse([](FrameHeader& h) { h.codec = "zfp"; }, KVT_ERR_UNSUPPORTED, "'zfp'");
  refuse([](FrameHeader& h) { h.element = KVT_ELEMENT_F32; }, KVT_ERR_CORRUPT, "element");
  refuse([](FrameHeader& h) { h.segments[1].decoded_length += 1; }, KVT_ERR_CORRUPT, "decoded length");
  refuse(
      [](FrameHeader& h) {
        h.codec = h.codec == "raw" ? "int8" : "raw", h.group_tokens = h.group_channels = 0;
      },
      KVT_ERR_CORRUPT, "stored length");
  refuse([](FrameHeader& h) { h.group_tokens = 5000; }, KVT_ERR_CORRUPT, "group_tokens is 5000");
  refuse(
      [](FrameHeader& h) {
        for (Segment& segment : h.segments) segment.head_begin = 3, segment.head_end = 4;
        h.head_begin = 3, h.head_end = 4;
      },
      KVT_ERR_MISMATCH, "shard's heads is [3, 4), expected [0, 1)");
  refuse(
      [](FrameHeader& h) {
        for (Segment& segment : h.segments) segment.layer_begin += 1, segment.layer_end += 1;
        h.layer_begin = 1, h.layer_end = 3;
      },
      KVT_ERR_MISMATCH, "shard's layers is [1, 3)");
  spec_.token_count = 4;
  const Status status = Decode(frame_);
  EXPECT_EQ(CodeOf(status), KVT_ERR_MISMATCH);
  EXPECT_THAT(std::string(status.message()), HasSubstr("token count is 5, expected 4"));
}

TEST_P(HostileTest, BothValuesOfAMismatchAreNamed) {
  const auto other = MakeModel({.layers = 2, .heads = 1, .k_dim = 9, .v_dim = 10, .id = "other"});
  const Status status =
      MakeCodec(other, GetParam(), 16, 8)->Decode(Bytes(frame_), spec_, target_.view()).status();
  EXPECT_EQ(CodeOf(status), KVT_ERR_MISMATCH);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Hex(Bytes(model_->fingerprint()))));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Hex(Bytes(other->fingerprint()))));
}

// Random changes with right checksums: anything may come back but a crash or a write outside of the view.
TEST_P(HostileTest, RandomHeadersDoNoHarm) {
  std::mt19937 random(99);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<uint8_t> frame = frame_;
    const uint32_t changes = 1 + random() % 4;
    for (uint32_t i = 0; i < changes; ++i) {
      const size_t at = 12 + random() % (header_.payload_offset - 12);
      const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<uint8_t>(random())};
      frame[at] = values[random() % std::size(values)];
    }
    Reseal(frame);
    const bool verified = Verify(frame).ok();
    const bool decoded = Decode(frame).ok();
    const auto described = DescribeFrame(Bytes(frame));
    ASSERT_TRUE(!verified || described.ok());
    refused += !decoded;
  }
  EXPECT_GT(refused, 2500);
}

// The payload is anything, its checksums are right: decoding keeps to the rows of the view.
TEST_P(HostileTest, RandomPayloadsDecodeInBounds) {
  std::mt19937 random(98);
  for (int round = 0; round < 500; ++round) {
    std::vector<uint8_t> frame = frame_;
    FrameHeader header = header_;
    for (Segment& segment : header.segments) {
      uint8_t* stored = frame.data() + header.payload_offset + segment.offset;
      for (uint64_t i = 0; i < segment.stored_length; ++i) stored[i] = static_cast<uint8_t>(random());
      segment.checksum = kernels::Hash(stored, segment.stored_length);
    }
    ASSERT_TRUE(Decode(WithHeader(frame, header, header_.payload_offset)).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, HostileTest, testing::ValuesIn(kCodecs),
                         [](const auto& test) { return std::string(test.param); });

TEST(HostileBytesTest, NoiseIsRefused) {
  std::mt19937 random(97);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> noise(random() % 300);
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
    ASSERT_FALSE(VerifyFrame(Bytes(noise), nullptr).ok());
    ASSERT_FALSE(DescribeFrame(Bytes(noise)).ok());
  }
}

}  // namespace
}  // namespace kvt::test
