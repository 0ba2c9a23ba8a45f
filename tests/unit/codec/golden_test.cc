// Stored bytes of every codec, by checksum: a change here is a change of the format (docs/frame-format.md).
#include <gtest/gtest.h>

#include "unit/codec/codec_fixture.h"

namespace kvt::test {
namespace {

struct Golden {
  const char* codec;
  uint64_t lengths[2];
  uint64_t checksums[2];
};

TEST(GoldenTest, StoredBytesAreThoseOfTheFormat) {
  const Golden all[] = {
      {"raw", {768, 1152}, {0x607695a2a8a5b2d8, 0xd4493db1eea4d4ad}},
      {"int8", {516, 732}, {0xc75500fdeccae811, 0xdc080473f733d614}},
      {"fp8", {516, 732}, {0x00dcaf63ae9efb54, 0xb98e6428b145a5e1}},
      {"fp8_e5m2", {516, 732}, {0x2f50f09318c347e2, 0x9524421d6419b9cd}},
      {"kivi2", {308, 606}, {0x93a23bc65feccaca, 0xd01298ab2a5c2140}},
      {"kivi4", {392, 732}, {0x189503f7e141646f, 0x0f6723658ee091ca}},
      {"kivi8", {560, 984}, {0x1a136a5661ca175d, 0x137a4e7570a87244}},
      {"rotated2", {264, 438}, {0x802c0ca758e9ecc4, 0xdae77aaf36f370bc}},
      {"rotated3", {306, 522}, {0x7d30c041dc5d5566, 0xdf56bff26f66e18d}},
      {"rotated4v2", {348, 438}, {0x0e9c3be1510c2326, 0xdae77aaf36f370bc}},
  };
  const auto model = MakeModel({.layers = 1, .heads = 2, .k_dim = 8, .v_dim = 12});
  Memory source(model, Layout::kDense, KVT_ELEMENT_F16, 24);
  source.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
    const auto value = static_cast<int>((stream * 17 + token * 7 + head * 5 + e * e * 3) % 64) - 32;
    source.Set(layer, stream, token, head, e, static_cast<float>(value) / 8);
  });
  for (const Golden& golden : all) {
    const auto codec = MakeCodec(model, golden.codec, 16, 8);
    const std::vector<uint8_t> frame = Encode(*codec, source.view(), MakeSpec(source.view(), 1, 2));
    const auto header = ParseFrame(Bytes(frame));
    ASSERT_TRUE(header.ok());
    ASSERT_EQ(header->segments.size(), 2u);
    for (int stream = 0; stream < 2; ++stream) {
      EXPECT_EQ(header->segments[stream].stored_length, golden.lengths[stream]) << golden.codec << stream;
      EXPECT_EQ(header->segments[stream].checksum, golden.checksums[stream]) << golden.codec << stream;
    }
  }
}

}  // namespace
}  // namespace kvt::test
