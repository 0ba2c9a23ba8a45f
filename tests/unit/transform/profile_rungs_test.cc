// What rungs cost, beside a profile: kept and given back, no part of what the profile is, and refused by name
// when it is damaged or hostile.
#include "codec/profile_rungs.h"

#include <gmock/gmock.h>

#include <cmath>

#include "codec/profile_frame.h"
#include "cpu/hash_copy.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPrefix = 128, kRung = 64;
constexpr char kProcessor[] = "Some Processor @ 2.70GHz";

kvt_profile_rung_t MakeRung(absl::string_view codec, uint32_t ratio, kvt_codec_rung_t cost) {
  kvt_profile_rung_t rung = {};
  std::copy(codec.begin(), codec.end(), rung.codec);
  rung.ratio = ratio;
  rung.cost = cost;
  return rung;
}

std::vector<kvt_profile_rung_t> TwoRungs() {
  return {MakeRung("int8", 0, {2.5e9, 3.5e9, 1.94, 120, 0}),
          MakeRung("transform", 16, {0.25e9, 0.3e9, 15.2, 4000, 0})};
}

std::string Block(const std::vector<kvt_profile_rung_t>& rungs) {
  const auto block = WriteProfileRungs(rungs, kProcessor);
  EXPECT_TRUE(block.ok()) << block.status();
  return block.ok() ? *block : "";
}

std::string Resealed(std::string block) {
  kernels::HashCopy hash(nullptr);
  hash.Add(block.data(), 16);
  hash.Add(block.data() + 24, block.size() - 24);
  StoreLe(block.data() + 16, hash.Digest());
  return block;
}

TEST(ProfileRungsTest, StandBesideTheProfileAndDoNotChangeIt) {
  const std::string with = SharedProfile() + Block(TwoRungs());
  const auto plain = *Profile::Parse(AsBytes(SharedProfile()));
  const auto parsed = Profile::Parse(AsBytes(with));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(plain->rungs().rungs.empty());
  EXPECT_EQ((*parsed)->fingerprint(), plain->fingerprint());
  EXPECT_EQ(AsText((*parsed)->own_bytes()), SharedProfile());
  const ProfileRungs& rungs = (*parsed)->rungs();
  EXPECT_EQ(rungs.processor, kProcessor);
  ASSERT_EQ(rungs.rungs.size(), 2u);
  EXPECT_STREQ(rungs.rungs[1].codec, "transform");
  EXPECT_EQ(rungs.rungs[1].ratio, 16u);
  EXPECT_EQ(rungs.rungs[1].cost.encode_rate, 0.25e9);
  EXPECT_EQ(rungs.rungs[1].cost.decode_rate, 0.3e9);
  EXPECT_EQ(rungs.rungs[1].cost.ratio, 15.2);
  EXPECT_EQ(rungs.rungs[1].cost.quality_class, 4000u);
  EXPECT_THAT(DescribeProfile(**parsed), HasSubstr(std::string("\"processor\":\"") + kProcessor + "\""));
  EXPECT_THAT(DescribeProfile(**parsed), HasSubstr("{\"codec\":\"transform\",\"ratio\":16,"));
  EXPECT_THAT(DescribeProfile(*plain), HasSubstr("\"processor\":\"\",\"rungs\":[]"));
  const auto frame = WrapProfile(AsBytes(with), {});
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(AsText(*UnwrapProfile(AsBytes(*frame))), with);
}

TEST(ProfileRungsTest, AProfileWithoutThemDecodesFramesOfOneWithThem) {
  const auto model = MakeModel(KvShape());
  Memory memory(model, Layout::kDense, KVT_ELEMENT_F16, 30);
  FillCorrelated(*model, &memory, 9);
  const auto with = MakeTransform(model, SharedProfile() + Block(TwoRungs()), 16);
  const auto frame = Encode(*with, memory.view(), MakeSpec(memory.view()));
  const auto without = MakeTransform(model, SharedProfile(), 16);
  const auto decoded = without->Decode(Bytes(frame), MakeSpec(memory.view()), memory.view());
  EXPECT_TRUE(decoded.ok()) << decoded.status();
}

TEST(ProfileRungsTest, AFlippedByteOrAnotherLengthIsDetected) {
  const std::string block = Block(TwoRungs());
  for (size_t i = 0; i < block.size(); ++i) {
    std::string damaged = block;
    damaged[i] ^= static_cast<char>(1 << i % 8);
    const kvt_status_t code = CodeOf(ReadProfileRungs(AsBytes(damaged)).status());
    ASSERT_TRUE(code == KVT_ERR_CORRUPT || code == KVT_ERR_VERSION) << "byte " << i;
  }
  for (size_t length = 0; length < block.size(); ++length)
    ASSERT_EQ(CodeOf(ReadProfileRungs(AsBytes(block.substr(0, length))).status()), KVT_ERR_CORRUPT);
  EXPECT_EQ(CodeOf(ReadProfileRungs(AsBytes(block + "x")).status()), KVT_ERR_CORRUPT);
  const std::string with = SharedProfile() + block;
  EXPECT_EQ(CodeOf(Profile::Parse(AsBytes(with.substr(0, with.size() - 1))).status()), KVT_ERR_CORRUPT);
  EXPECT_EQ(CodeOf(Profile::Parse(AsBytes(with + block)).status()), KVT_ERR_CORRUPT);
}

// With a right checksum.
TEST(ProfileRungsTest, HostileNumbersAreNamed) {
  const auto refused = [](size_t at, auto value) {
    std::string block = Block(TwoRungs());
    StoreLe(block.data() + at, value);
    const Status status = ReadProfileRungs(AsBytes(Resealed(block))).status();
    EXPECT_TRUE(CodeOf(status) == KVT_ERR_CORRUPT || CodeOf(status) == KVT_ERR_VERSION) << status;
    return std::string(status.message());
  };
  const size_t second = kPrefix + kRung;
  EXPECT_THAT(refused(0, 'X'), HasSubstr("begin with KVTL"));
  EXPECT_THAT(refused(4, uint32_t{2}), HasSubstr("version is 2"));
  EXPECT_THAT(refused(8, uint32_t{0}), HasSubstr("are 0, expected 1 to 64"));
  EXPECT_THAT(refused(8, UINT32_MAX), HasSubstr("are 4294967295, expected 1 to 64"));
  EXPECT_THAT(refused(8, uint32_t{3}), HasSubstr("3 of them do not have 256 bytes"));
  EXPECT_THAT(refused(12, uint32_t{1}), HasSubstr("reserved"));
  EXPECT_THAT(refused(24, '"'), HasSubstr("processor"));
  EXPECT_THAT(refused(24, '\0'), HasSubstr("processor"));
  EXPECT_THAT(refused(127, 'x'), HasSubstr("processor"));
  EXPECT_THAT(refused(second, '\n'), HasSubstr("rungs[1].codec"));
  EXPECT_THAT(refused(second + 4, '\0'), HasSubstr("rungs[1].codec"));
  EXPECT_THAT(refused(second + 32, 0.0), HasSubstr("rungs[1].cost.encode_rate is 0"));
  EXPECT_THAT(refused(second + 32, -1e9), HasSubstr("rungs[1].cost.encode_rate is -1e+09"));
  EXPECT_THAT(refused(second + 40, std::nan("")), HasSubstr("rungs[1].cost.decode_rate is nan"));
  EXPECT_THAT(refused(second + 48, HUGE_VAL), HasSubstr("rungs[1].cost.ratio is inf"));
  EXPECT_THAT(refused(second + 56, uint64_t{1}), HasSubstr("reserved"));
}

TEST(ProfileRungsTest, WhatCannotBeReadIsNotWritten) {
  const auto refused = [](const auto& change, absl::string_view processor = kProcessor) {
    std::vector<kvt_profile_rung_t> rungs = TwoRungs();
    change(&rungs);
    const Status status = WriteProfileRungs(rungs, processor).status();
    EXPECT_EQ(CodeOf(status), KVT_ERR_INVALID_ARGUMENT) << status;
    return std::string(status.message());
  };
  using Rungs = std::vector<kvt_profile_rung_t>;
  EXPECT_THAT(refused([](Rungs* r) { r->clear(); }), HasSubstr("is 0"));
  EXPECT_THAT(refused([](Rungs* r) { r->resize(65, r->front()); }), HasSubstr("is 65, expected up to 64"));
  EXPECT_THAT(refused([](Rungs* r) { std::fill_n((*r)[1].codec, 24, 'x'); }), HasSubstr("rungs[1].codec"));
  EXPECT_THAT(refused([](Rungs* r) { (*r)[0].codec[0] = 0; }), HasSubstr("rungs[0].codec"));
  EXPECT_THAT(refused([](Rungs* r) { (*r)[0].reserved = 7; }), HasSubstr("rungs[0].reserved is 7"));
  EXPECT_THAT(refused([](Rungs* r) { (*r)[0].cost.decode_rate = NAN; }), HasSubstr("decode_rate is nan"));
  EXPECT_THAT(refused([](Rungs* r) { (*r)[0].cost.reserved = 1; }), HasSubstr("cost.reserved is 1"));
  EXPECT_THAT(refused([](Rungs*) {}, ""), HasSubstr("processor_len is 0"));
  EXPECT_THAT(refused([](Rungs*) {}, std::string(104, 'x')), HasSubstr("processor_len is 104"));
  EXPECT_THAT(refused([](Rungs*) {}, "caf\xc3\xa9"), HasSubstr("processor"));
  EXPECT_EQ((*ReadProfileRungs(AsBytes(Block(Rungs(64, TwoRungs()[0]))))).rungs.size(), 64u);
  EXPECT_TRUE(WriteProfileRungs(TwoRungs(), std::string(103, 'x')).ok());
}

}  // namespace
}  // namespace kvt::test
