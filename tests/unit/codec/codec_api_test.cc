// Codec and frame through their own functions: parameters, bounds, specs, descriptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/describe.h"
#include "unit/codec/codec_fixture.h"

namespace kvt::test {
namespace {

using testing::HasSubstr;

Status CreateStatus(const std::string& name, uint32_t group_tokens, uint32_t group_channels,
                    uint32_t element = KVT_ELEMENT_F16) {
  kvt_codec_options_t options = {};
  options.struct_size = sizeof options;
  options.name = name.data();
  options.name_len = name.size();
  options.group_tokens = group_tokens;
  options.group_channels = group_channels;
  return Codec::Create(MakeModel({.element = element}), options).status();
}

TEST(CodecTest, ParametersAreChecked) {
  EXPECT_TRUE(CreateStatus("kivi2", 16, 8).ok());
  EXPECT_TRUE(CreateStatus("kivi4", 1024, 8192).ok());
  EXPECT_EQ(CodeOf(CreateStatus("kivi2", 15, 32)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CreateStatus("kivi2", 1025, 32)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CreateStatus("kivi4", 32, 7)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CreateStatus("kivi4", 32, 8193)), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CreateStatus("kivi3", 32, 32)), KVT_ERR_UNSUPPORTED);
  for (const char* name :
       {"RAW", "fp8_e4m3", "fp8_", "kivi16", "rotated", "rotated1", "rotated5", "rotated8", "rotated44",
        "rotated4v", "rotated4v4", "rotated4v5", "rotatedv2", "rotated4x2", "rotated4v22"}) {
    EXPECT_EQ(CodeOf(CreateStatus(name, 32, 32)), KVT_ERR_UNSUPPORTED) << name;
  }
  for (const char* name : {"fp8", "fp8_e5m2", "kivi8", "rotated2v4", "rotated3v2", "rotated4v3"})
    EXPECT_TRUE(CreateStatus(name, 32, 32).ok()) << name;
  EXPECT_TRUE(CreateStatus("raw", 32, 32, KVT_ELEMENT_FP8_E4M3).ok());
  const Status status = CreateStatus("int8", 32, 32, KVT_ELEMENT_FP8_E5M2);
  EXPECT_EQ(CodeOf(status), KVT_ERR_UNSUPPORTED);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fp8_e5m2"));
}

TEST(CodecTest, Fp8IsNeverConverted) {
  const auto model = MakeModel({.element = KVT_ELEMENT_FP8_E4M3});
  const auto codec = MakeCodec(model, "raw");
  Memory halves(model, Layout::kDense, KVT_ELEMENT_F16, 4);
  EXPECT_EQ(CodeOf(codec->Bound(halves.view(), MakeSpec(halves.view())).status()), KVT_ERR_UNSUPPORTED);
}

TEST(CodecTest, TheBoundIsEnoughAndOneByteLessIsNot) {
  for (const char* name : kCodecs) {
    for (const uint64_t tokens : {1, 16, 45}) {
      for (const uint32_t exempt : {0u, 3u, 100u}) {
        const auto model = MakeModel({.k_dim = 24, .v_dim = 40});
        const auto codec = MakeCodec(model, name);
        Memory source(model, Layout::kDense, KVT_ELEMENT_F16, tokens);
        source.Fill(1);
        const FrameSpec spec = MakeSpec(source.view(), exempt, exempt);
        const uint64_t bound = *codec->Bound(source.view(), spec);
        std::vector<uint8_t> out(bound + 1, 0x5a);
        const auto encoded = codec->Encode(source.view(), spec, MutableBytes(out.data(), bound));
        ASSERT_TRUE(encoded.ok());
        EXPECT_LE(encoded->frame_bytes, bound);
        EXPECT_EQ(out[bound], 0x5a);
        EXPECT_EQ(CodeOf(codec->Encode(source.view(), spec, MutableBytes(out.data(), bound - 1)).status()),
                  KVT_ERR_BUFFER_TOO_SMALL);
      }
    }
  }
}

TEST(CodecTest, RatiosAreThoseOfTheFormats) {
  const auto model = MakeModel({.layers = 4, .heads = 4, .k_dim = 64, .v_dim = 64});
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 512);
  source.Fill(1);
  const FrameSpec spec = MakeSpec(source.view());
  const double rows = 512.0 * 4 * 4 * 128 * 2;
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "raw"), source.view(), spec).size(), 1.0, 0.01);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "int8"), source.view(), spec).size(), 16 / 8.25, 0.02);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "kivi4"), source.view(), spec).size(), 16 / 5.0, 0.03);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "kivi2"), source.view(), spec).size(), 16 / 3.0, 0.06);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "kivi8"), source.view(), spec).size(), 16 / 9.0, 0.02);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "fp8"), source.view(), spec).size(), 16 / 8.25, 0.02);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "rotated4"), source.view(), spec).size(), 16 / 4.25, 0.04);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "rotated3"), source.view(), spec).size(), 16 / 3.25, 0.06);
  EXPECT_NEAR(rows / Encode(*MakeCodec(model, "rotated4v2"), source.view(), spec).size(), 16 / 3.25, 0.06);
}

TEST(CodecTest, FramesMayLieAtAnyAddress) {
  for (const char* name : kCodecs) {
    const auto model = MakeModel({});
    const auto codec = MakeCodec(model, name);
    Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 9);
    source.Fill(1);
    const FrameSpec spec = MakeSpec(source.view());
    const std::vector<uint8_t> frame = Encode(*codec, source.view(), spec);
    std::vector<uint8_t> shifted(frame.size() + 8);
    for (size_t shift = 1; shift < 8; ++shift) {
      const auto encoded =
          codec->Encode(source.view(), spec, MutableBytes(shifted.data() + shift, frame.size()));
      ASSERT_TRUE(encoded.ok());
      ASSERT_EQ(std::memcmp(shifted.data() + shift, frame.data(), frame.size()), 0);
      Memory target(model, Layout::kDense, KVT_ELEMENT_F16, 9);
      ASSERT_TRUE(codec->Decode(Bytes(shifted.data() + shift, frame.size()), spec, target.view()).ok());
    }
  }
}

TEST(FrameSpecTest, EveryFieldIsChecked) {
  const auto model = MakeModel({.layers = 4});
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 10);
  const View view = memory.view();
  kvt_frame_spec_t spec = {};
  spec.struct_size = sizeof spec;
  spec.token_count = 10;
  const auto code = [&] { return CodeOf(FrameSpec::Check(view, &spec).status()); };
  ASSERT_EQ(code(), KVT_OK);
  EXPECT_EQ(FrameSpec::Check(view, &spec)->layer_end, 4u);
  EXPECT_TRUE(FrameSpec::Check(view, &spec)->key.IsNull());
  spec.token_begin = 1;
  EXPECT_EQ(code(), KVT_ERR_OUT_OF_RANGE);
  spec.token_begin = UINT64_MAX;
  EXPECT_EQ(code(), KVT_ERR_OUT_OF_RANGE);
  spec.token_begin = 0;
  spec.token_count = 0;
  EXPECT_EQ(code(), KVT_ERR_INVALID_ARGUMENT);
  spec.token_count = UINT64_MAX;
  EXPECT_EQ(code(), KVT_ERR_INVALID_ARGUMENT);
  spec.token_count = 10;
  spec.layer_begin = 2;
  EXPECT_EQ(code(), KVT_ERR_INVALID_ARGUMENT);
  spec.layer_end = 5;
  EXPECT_EQ(code(), KVT_ERR_OUT_OF_RANGE);
  spec.layer_end = 3;
  EXPECT_EQ(code(), KVT_OK);
  spec.reserved = 1;
  EXPECT_EQ(code(), KVT_ERR_INVALID_ARGUMENT);
  spec.reserved = 0;
  spec.struct_size = 4;
  EXPECT_EQ(code(), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(FrameSpec::Check(view, nullptr).status()), KVT_ERR_INVALID_ARGUMENT);
}

TEST(DescribeTest, NamesEveryField) {
  const auto model = MakeModel({});
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 40, 64);
  source.Fill(1);
  const FrameSpec spec = MakeSpec(source.view(), 4, 8);
  const std::vector<uint8_t> frame = Encode(*MakeCodec(model, "kivi4"), source.view(), spec);
  const auto json = DescribeFrame(Bytes(frame));
  ASSERT_TRUE(json.ok());
  for (const std::string& part :
       {std::string("{\"format_version\":1,"), absl::StrCat("\"frame_bytes\":", frame.size(), ","),
        absl::StrCat("\"model\":\"", Hex(Bytes(model->fingerprint())), "\""), std::string("\"profile\":null"),
        absl::StrCat("\"key\":\"", spec.key.ToString(), "\""),
        std::string("\"layers\":[0,2],\"heads\":[0,2],\"streams\":2,\"element\":\"f16\""),
        std::string("\"codec\":\"kivi4\",\"group_tokens\":32,\"group_channels\":32"),
        std::string("\"first_position\":64,\"tokens\":40,\"exempt_first\":4,\"exempt_last\":8"),
        std::string("\"segments\":[{\"stream\":0,\"layers\":[0,1],\"heads\":[0,2],\"offset\":0,")}) {
    EXPECT_THAT(*json, HasSubstr(part));
  }
  EXPECT_EQ(json->back(), '}');
}

}  // namespace
}  // namespace kvt::test
