// Every instruction set that this processor has, against the scalar reference, byte for byte.
#include "cpu/int8.h"
#include "cpu/kivi.h"
#include "unit/kernels/lossy_fixture.h"

namespace kvt::kernels {
namespace {

TEST_P(LossyTest, Int8IsTheReference) {
  const Element element = GetParam();
  for (const auto& [count, heads, dim] : kShapes) {
    Rows rows(element, count, heads * dim, 1);
    std::vector<uint8_t> expected(count * Int8RecordBytes(heads, dim));
    uint64_t expected_nonfinite = 0;
    reference::Int8Encode(element, rows.read(), count, heads, dim, expected.data(), &expected_nonfinite);
    Rows decoded(element, count, heads * dim, 2);
    decoded.Clear();
    reference::Int8Decode(element, expected.data(), count, heads, dim, decoded.write());
    ForTargets([&, count = count, heads = heads, dim = dim] {
      std::vector<uint8_t> record(expected.size() + 1, 0x5a);
      uint64_t nonfinite = 0;
      Int8Encode(element, rows.read(), count, heads, dim, record.data(), &nonfinite);
      EXPECT_EQ(record.back(), 0x5a);
      record.pop_back();
      EXPECT_EQ(record, expected) << count << " " << heads << " " << dim;
      EXPECT_EQ(nonfinite, expected_nonfinite);
      Rows out(element, count, heads * dim, 3);
      out.Clear();
      Int8Decode(element, record.data(), count, heads, dim, out.write());
      EXPECT_EQ(out.memory(), decoded.memory()) << count << " " << heads << " " << dim;
    });
  }
}

TEST_P(LossyTest, KiviByTokenIsTheReference) {
  const Element element = GetParam();
  for (const auto& [count, heads, dim] : kShapes) {
    for (const size_t wanted : {8, 32, 100, 8192}) {
      const size_t group = std::min(wanted, dim);
      for (const uint32_t bits : {2u, 4u, 8u}) {
        Rows rows(element, count, heads * dim, 4);
        std::vector<uint8_t> expected(count * KiviTokenRecordBytes(heads, dim, group, bits));
        uint64_t expected_nonfinite = 0;
        reference::KiviTokenEncode(element, bits, rows.read(), count, heads, dim, group, expected.data(),
                                   &expected_nonfinite);
        Rows decoded(element, count, heads * dim, 5);
        decoded.Clear();
        reference::KiviTokenDecode(element, bits, expected.data(), count, heads, dim, group, decoded.write());
        ForTargets([&, count = count, heads = heads, dim = dim] {
          std::vector<uint8_t> record(expected.size() + 1, 0x5a);
          uint64_t nonfinite = 0;
          KiviTokenEncode(element, bits, rows.read(), count, heads, dim, group, record.data(), &nonfinite);
          EXPECT_EQ(record.back(), 0x5a);
          record.pop_back();
          EXPECT_EQ(record, expected) << heads << " " << dim << " " << group << " " << bits;
          EXPECT_EQ(nonfinite, expected_nonfinite);
          Rows out(element, count, heads * dim, 6);
          out.Clear();
          KiviTokenDecode(element, bits, record.data(), count, heads, dim, group, out.write());
          EXPECT_EQ(out.memory(), decoded.memory()) << heads << " " << dim << " " << group << " " << bits;
        });
      }
    }
  }
}

TEST_P(LossyTest, KiviByChannelIsTheReference) {
  const Element element = GetParam();
  for (const auto& [tokens, heads, dim] : kShapes) {
    const size_t channels = heads * dim;
    for (const uint32_t bits : {2u, 4u, 8u}) {
      Rows rows(element, tokens, channels, 7);
      std::vector<uint8_t> expected(KiviChannelRecordBytes(tokens, channels, bits));
      uint64_t expected_nonfinite = 0;
      reference::KiviChannelEncode(element, bits, rows.read(), tokens, channels, expected.data(),
                                   &expected_nonfinite);
      Rows decoded(element, tokens, channels, 8);
      decoded.Clear();
      reference::KiviChannelDecode(element, bits, expected.data(), tokens, channels, decoded.write());
      ForTargets([&, tokens = tokens] {
        std::vector<uint8_t> record(expected.size() + 1, 0x5a);
        uint64_t nonfinite = 0;
        KiviChannelEncode(element, bits, rows.read(), tokens, channels, record.data(), &nonfinite);
        EXPECT_EQ(record.back(), 0x5a);
        record.pop_back();
        EXPECT_EQ(record, expected) << tokens << " " << channels << " " << bits;
        EXPECT_EQ(nonfinite, expected_nonfinite);
        Rows out(element, tokens, channels, 9);
        out.Clear();
        KiviChannelDecode(element, bits, record.data(), tokens, channels, out.write());
        EXPECT_EQ(out.memory(), decoded.memory()) << tokens << " " << channels << " " << bits;
      });
    }
  }
}

// Whatever the bytes are, what comes out is finite.
TEST_P(LossyTest, HostileRecordsDecodeToFiniteValues) {
  const Element element = GetParam();
  std::mt19937 random(11);
  constexpr size_t kTokens = 4, kHeads = 2, kDim = 48;
  std::vector<uint8_t> record(4096);
  Rows rows(element, kTokens, kHeads * kDim, 12);
  for (int round = 0; round < 200; ++round) {
    for (uint8_t& byte : record) byte = static_cast<uint8_t>(random() % 3 == 0 ? 0xff : random());
    ForTargets([&] {
      const auto check = [&](const char* what) {
        for (size_t r = 0; r < kTokens; ++r) {
          for (size_t c = 0; c < kHeads * kDim; ++c)
            ASSERT_TRUE(std::isfinite(LoadElement(element, rows.read()[r], c))) << what;
        }
      };
      Int8Decode(element, record.data(), kTokens, kHeads, kDim, rows.write());
      check("int8");
      KiviTokenDecode(element, 2, record.data(), kTokens, kHeads, kDim, 32, rows.write());
      check("kivi by token");
      KiviChannelDecode(element, 4, record.data(), kTokens, kHeads * kDim, rows.write());
      check("kivi by channel");
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, LossyTest, testing::Values(Element::kF32, Element::kF16, Element::kBf16),
                         ElementOf);

}  // namespace
}  // namespace kvt::kernels
