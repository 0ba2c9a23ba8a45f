// The nested codecs: the coarse frame reads alone, the rest makes it the rows that were, bit for bit.
#include "codec/nested/nested.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codec/nested/parts.h"
#include "unit/codec/codec_fixture.h"

namespace kvt::test {
namespace {

using testing::HasSubstr;

constexpr uint32_t kElements[] = {KVT_ELEMENT_F32, KVT_ELEMENT_F16, KVT_ELEMENT_BF16};

struct Frames {
  std::vector<uint8_t> coarse, rest;
};

class NestedTest : public testing::Test {
 protected:
  void Use(const ModelShape& shape) {
    model_ = MakeModel(shape);
    coarse_ = MakeCodec(model_, "nested_coarse");
    rest_ = MakeCodec(model_, "nested_rest");
  }
  Frames EncodeBoth(const Memory& source, uint32_t exempt, uint64_t* nonfinite = nullptr) const {
    const View view = source.view();
    CodecReport report;
    Frames frames;
    frames.coarse = Encode(*coarse_, view, MakeSpec(view, exempt, exempt), &report);
    frames.rest = Encode(*rest_, view, MakeSpec(view, exempt, exempt));
    if (nonfinite != nullptr) *nonfinite = report.nonfinite;
    EXPECT_TRUE(VerifyFrame(Bytes(frames.coarse), nullptr).ok());
    EXPECT_TRUE(VerifyFrame(Bytes(frames.rest), nullptr).ok());
    return frames;
  }
  // Any codec of the model reads either frame.
  static Status Decode(const Codec& codec, const std::vector<uint8_t>& frame, const Memory& target) {
    return codec.Decode(Bytes(frame), MakeSpec(target.view()), target.view()).status();
  }
  static void ExpectSameBits(const Memory& a, const Memory& b, uint32_t element) {
    a.ForEach([&](uint32_t layer, uint32_t stream, uint64_t token, uint32_t head, uint32_t e) {
      ASSERT_EQ(std::memcmp(a.At(layer, stream, token, head, e), b.At(layer, stream, token, head, e),
                            ElementBytes(element)),
                0)
          << "layer " << layer << " stream " << stream << " token " << token << " element " << e;
    });
  }

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Codec> coarse_, rest_;
};

// Random bits, rows of one value, and ordinary rows.
TEST_F(NestedTest, TheRestMakesEveryBitOfTheRows) {
  for (const uint32_t element : kElements) {
    Use({.k_dim = 24, .v_dim = 7, .element = element});
    for (const Layout layout : {Layout::kDense, Layout::kPaged, Layout::kStrided}) {
      for (const uint64_t tokens : {1u, 6u, 33u, 300u}) {
        for (const uint32_t exempt : {0u, 3u}) {
          for (const int kind : {0, 1, 2}) {
            Memory source(model_, layout, element, tokens, 5);
            if (kind == 1) source.FillBits(element);
            if (kind == 2) source.Fill(element);
            const Frames frames = EncodeBoth(source, exempt);
            Memory target(model_, layout, element, tokens, 5);
            ASSERT_TRUE(Decode(*coarse_, frames.coarse, target).ok());
            for (int times = 0; times < 2; ++times) {
              const Status status = Decode(*coarse_, frames.rest, target);
              ASSERT_TRUE(status.ok()) << status;
            }
            ExpectSameBits(source, target, element);
          }
        }
      }
    }
  }
}

TEST_F(NestedTest, CoarseRowsAreNearAndExemptOnesExact) {
  for (const uint32_t element : kElements) {
    Use({.k_dim = 32, .v_dim = 32, .element = element});
    Memory source(model_, Layout::kDense, element, 400);
    source.Fill(3);
    const Frames frames = EncodeBoth(source, 4);
    Memory target(model_, Layout::kPaged, element, 400);
    ASSERT_TRUE(Decode(*coarse_, frames.coarse, target).ok());
    double error = 0, squared = 0;
    source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      const double before = source.Get(layer, stream, token, head, e);
      const double after = target.Get(layer, stream, token, head, e);
      if (token < 4 || token >= 396) {
        ASSERT_EQ(before, after);
        return;
      }
      ASSERT_LE(std::fabs(before - after), 0.25 * std::fabs(before) + 0x1p-15);
      error += (before - after) * (before - after);
      squared += before * before;
    });
    EXPECT_LT(error / squared, 0.013);
  }
}

TEST_F(NestedTest, ZerosAndWhatIsNotFiniteStayInTheCoarseRows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const uint32_t element : kElements) {
    Use({.layers = 1, .element = element});
    Memory source(model_, Layout::kDense, element, 20);
    source.Fill(1);
    source.Set(0, 0, 1, 0, 3, 0.0f);
    source.Set(0, 0, 2, 0, 3, -0.0f);
    source.Set(0, 0, 3, 0, 3, kInfinity);
    source.Set(0, 1, 4, 0, 3, -kInfinity);
    source.Set(0, 1, 5, 0, 3, std::nanf(""));
    uint64_t nonfinite = 0;
    const Frames frames = EncodeBoth(source, 0, &nonfinite);
    EXPECT_EQ(nonfinite, 3u);
    Memory target(model_, Layout::kDense, element, 20);
    ASSERT_TRUE(Decode(*coarse_, frames.coarse, target).ok());
    EXPECT_EQ(target.Get(0, 0, 1, 0, 3), 0.0f);
    EXPECT_TRUE(std::signbit(target.Get(0, 0, 2, 0, 3)));
    EXPECT_EQ(target.Get(0, 0, 3, 0, 3), kInfinity);
    EXPECT_EQ(target.Get(0, 1, 4, 0, 3), -kInfinity);
    EXPECT_TRUE(std::isnan(target.Get(0, 1, 5, 0, 3)));
    ASSERT_TRUE(Decode(*coarse_, frames.rest, target).ok());
    ExpectSameBits(source, target, element);
  }
}

// Subnormal rows, and all bits but those of the exponent.
TEST_F(NestedTest, SubnormalsComeBack) {
  for (const uint32_t element : kElements) {
    Use({.layers = 1, .element = element});
    Memory source(model_, Layout::kDense, element, 300);
    source.FillBits(9);
    const uint32_t exponent = nested::FormOf(element, 0).exponent;
    source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      uint32_t bits = 0;
      uint8_t* at = source.At(layer, stream, token, head, e);
      std::memcpy(&bits, at, ElementBytes(element));
      bits &= ~exponent;
      std::memcpy(at, &bits, ElementBytes(element));
    });
    const Frames frames = EncodeBoth(source, 1);
    Memory target(model_, Layout::kDense, element, 300);
    ASSERT_TRUE(Decode(*coarse_, frames.coarse, target).ok());
    target.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_TRUE(std::isfinite(target.Get(layer, stream, token, head, e)));
    });
    ASSERT_TRUE(Decode(*coarse_, frames.rest, target).ok());
    ExpectSameBits(source, target, element);
  }
}

TEST_F(NestedTest, BothFramesHaveLittleMoreThanLossless) {
  for (const uint32_t element : kElements) {
    Use({.k_dim = 32, .v_dim = 32, .element = element});
    Memory source(model_, Layout::kDense, element, 1500);
    source.Fill(4);
    const Frames frames = EncodeBoth(source, 0);
    const size_t lossless =
        Encode(*MakeCodec(model_, "lossless"), source.view(), MakeSpec(source.view())).size();
    EXPECT_LE(frames.coarse.size() + frames.rest.size(), lossless * 103 / 100);
    EXPECT_LE(frames.coarse.size(), lossless * 55 / 100);
  }
}

TEST_F(NestedTest, ManyChunksComeBack) {
  Use({.layers = 1, .heads = 1, .k_dim = 8, .v_dim = 8});
  Memory source(model_, Layout::kDense, KVT_ELEMENT_F16, 9001);
  source.Fill(6);
  const Frames frames = EncodeBoth(source, 2);
  Memory target(model_, Layout::kDense, KVT_ELEMENT_F16, 9001);
  ASSERT_TRUE(Decode(*rest_, frames.coarse, target).ok());
  ASSERT_TRUE(Decode(*rest_, frames.rest, target).ok());
  ExpectSameBits(source, target, KVT_ELEMENT_F16);
}

// Wider rows are stored as they are.
TEST_F(NestedTest, WideRowsComeBack) {
  Use({.layers = 1, .heads = 3, .k_dim = 6000, .v_dim = 8});
  Memory source(model_, Layout::kDense, KVT_ELEMENT_F16, 3);
  source.Fill(6);
  const Frames frames = EncodeBoth(source, 1);
  Memory target(model_, Layout::kDense, KVT_ELEMENT_F16, 3);
  ASSERT_TRUE(Decode(*rest_, frames.coarse, target).ok());
  ASSERT_TRUE(Decode(*rest_, frames.rest, target).ok());
  ExpectSameBits(source, target, KVT_ELEMENT_F16);
}

TEST_F(NestedTest, ViewsOfF32HoldTheCoarseRowsOfNarrowerTypes) {
  for (const uint32_t element : {KVT_ELEMENT_F16, KVT_ELEMENT_BF16}) {
    Use({.element = element});
    Memory source(model_, Layout::kDense, element, 90);
    source.Fill(2);
    const Frames frames = EncodeBoth(source, 2);
    Memory target(model_, Layout::kStrided, KVT_ELEMENT_F32, 90);
    ASSERT_TRUE(Decode(*coarse_, frames.coarse, target).ok());
    ASSERT_TRUE(Decode(*coarse_, frames.rest, target).ok());
    source.ForEach([&](auto layer, auto stream, auto token, auto head, auto e) {
      ASSERT_EQ(source.Get(layer, stream, token, head, e), target.Get(layer, stream, token, head, e));
    });
  }
}

TEST_F(NestedTest, TheRestIsRefusedWhereTheCoarseRowsAreNot) {
  Use({});
  Memory source(model_, Layout::kDense, KVT_ELEMENT_F16, 90);
  source.Fill(2);
  const Frames frames = EncodeBoth(source, 2);
  Memory empty(model_, Layout::kDense, KVT_ELEMENT_F16, 90);
  const Status status = Decode(*rest_, frames.rest, empty);
  EXPECT_EQ(CodeOf(status), KVT_ERR_MISMATCH);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nested_coarse"));
  Memory other(model_, Layout::kDense, KVT_ELEMENT_BF16, 90);
  ASSERT_TRUE(Decode(*coarse_, frames.coarse, other).ok());
  const Status narrow = Decode(*rest_, frames.rest, other);
  EXPECT_EQ(CodeOf(narrow), KVT_ERR_UNSUPPORTED);
  EXPECT_THAT(std::string(narrow.message()), HasSubstr("bf16"));
}

}  // namespace
}  // namespace kvt::test
