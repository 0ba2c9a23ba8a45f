#include "cpu/rotated.h"

#include "unit/kernels/lossy_fixture.h"

namespace kvt::kernels {
namespace {

constexpr uint32_t kWidths[] = {2, 3, 4};

// The distortion of the best quantiser of a normal value with 2^bits levels, and its levels: Lloyd's
// iteration with the exact integrals.
struct Lloyd {
  explicit Lloyd(uint32_t bits) : levels(size_t{1} << bits) {
    const auto n = static_cast<double>(levels.size());
    for (size_t i = 0; i < levels.size(); ++i) levels[i] = 6 * (static_cast<double>(i) + 0.5) / n - 3;
    for (int round = 0; round < 3000; ++round) {
      const std::vector<double> before = levels;
      for (size_t i = 0; i < levels.size(); ++i) {
        const double low = Bound(before, i), high = Bound(before, i + 1);
        levels[i] = (Density(low) - Density(high)) / (Below(high) - Below(low));
      }
    }
  }
  static double Density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
  static double Below(double x) { return std::erfc(-x / M_SQRT2) / 2; }
  // The lower bound of level i.
  static double Bound(const std::vector<double>& levels, size_t i) {
    return i == 0 ? -40 : i == levels.size() ? 40 : (levels[i - 1] + levels[i]) / 2;
  }
  static double Distortion(const std::vector<double>& levels) {
    double sum = 0;
    for (size_t i = 0; i < levels.size(); ++i) {
      const double low = Bound(levels, i), high = Bound(levels, i + 1), mass = Below(high) - Below(low);
      const double first = Density(low) - Density(high);
      const double second = mass + low * Density(low) - high * Density(high);
      sum += second - 2 * levels[i] * first + levels[i] * levels[i] * mass;
    }
    return sum;
  }

  std::vector<double> levels;
};

TEST(RotatedTest, LevelsAreThoseOfLloydAndMax) {
  const double distortions[] = {0.1175, 0.03455, 0.009501};
  for (const uint32_t bits : kWidths) {
    const Lloyd best(bits);
    EXPECT_NEAR(Lloyd::Distortion(best.levels), distortions[bits - 2], 1e-4);
    const double unit = kRotatedBooks[bits - 2].unit;
    std::vector<double> ours;
    for (size_t i = 0; i < best.levels.size(); ++i) {
      const int level = LevelsOf(bits)[i];
      EXPECT_NEAR(level, best.levels[i] * unit, 0.5) << bits << " " << i;
      ours.push_back(level / unit);
    }
    EXPECT_LE(Lloyd::Distortion(ours), Lloyd::Distortion(best.levels) * 1.001) << bits;
  }
}

TEST(RotatedTest, SignsAreSplitMix64) {
  // The first numbers of seed 0 are e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec.
  const bool negated[] = {true, false, false, true};
  for (size_t e = 0; e < 4; ++e) EXPECT_EQ(RotatedSign(e) != 0, negated[e]);
  size_t count = 0;
  for (size_t e = 0; e < kRotatedDimMax; ++e) count += RotatedSign(e) != 0;
  EXPECT_NEAR(static_cast<double>(count), kRotatedDimMax / 2.0, 200);
}

TEST(RotatedTest, BlocksAreTheBinaryDigits) {
  const auto sizes = [](size_t dim) {
    std::vector<size_t> found;
    size_t next = 0;
    ForRotatedBlocks(dim, [&](size_t index, size_t begin, size_t size) {
      EXPECT_EQ(index, found.size());
      EXPECT_EQ(begin, next);
      next = begin + size;
      found.push_back(size);
    });
    EXPECT_EQ(next, dim);
    EXPECT_EQ(found.size(), RotatedBlocks(dim));
    return found;
  };
  EXPECT_EQ(sizes(128), std::vector<size_t>({128}));
  EXPECT_EQ(sizes(576), std::vector<size_t>({512, 64}));
  EXPECT_EQ(sizes(7), std::vector<size_t>({4, 2, 1}));
  EXPECT_EQ(sizes(8191).size(), 13u);
}

// The error of a whole encoding and decoding over the squared norm, of rows that `value` gives.
template <typename Value>
double Distortion(uint32_t bits, size_t dim, const Value& value) {
  constexpr size_t kRows = 2000;
  std::vector<float> from(kRows * dim), to(kRows * dim);
  for (size_t i = 0; i < from.size(); ++i) from[i] = value(i % dim);
  std::vector<const void*> read;
  std::vector<void*> write;
  for (size_t r = 0; r < kRows; ++r) {
    read.push_back(from.data() + r * dim);
    write.push_back(to.data() + r * dim);
  }
  std::vector<uint8_t> record(kRows * RotatedRecordBytes(1, dim, bits));
  uint64_t nonfinite = 0;
  RotatedEncode(Element::kF32, bits, read.data(), kRows, 1, dim, record.data(), &nonfinite);
  RotatedDecode(Element::kF32, bits, record.data(), kRows, 1, dim, write.data());
  double error = 0, norm = 0;
  for (size_t r = 0; r < kRows; ++r) {
    double before = 0, after = 0;
    for (size_t e = r * dim; e < (r + 1) * dim; ++e) {
      before += from[e] * from[e];
      after += to[e] * to[e];
      error += (from[e] - to[e]) * (from[e] - to[e]);
    }
    // The norm is restored but for the rounding of its scale.
    EXPECT_NEAR(std::sqrt(after / before), 1, 6e-4);
    norm += before;
  }
  return error / norm;
}

TEST(RotatedTest, DistortionIsThatOfTheLevels) {
  // Of the levels themselves; restoring the norm adds a quarter of the square.
  const double expected[] = {0.1175, 0.03455, 0.009501};
  std::mt19937 random(41);
  std::normal_distribution<float> normal(0, 0.7f);
  for (const uint32_t bits : kWidths) {
    const double least = expected[bits - 2];
    for (const size_t dim : {64, 128, 96, 576}) {
      const double gaussian = Distortion(bits, dim, [&](size_t) { return normal(random); });
      // The norm is known, which counts for more in short blocks.
      EXPECT_LE(gaussian, least * 1.04) << bits << " " << dim;
      EXPECT_GE(gaussian, least * (dim >= 128 && dim != 576 ? 0.95 : 0.88)) << bits << " " << dim;
      // A few elements much larger than the others are spread over all: no worse than that.
      const double spiky =
          Distortion(bits, dim, [&](size_t e) { return normal(random) * (e % 29 == 3 ? 30.0f : 1.0f); });
      EXPECT_LE(spiky, least * 1.25) << bits << " " << dim;
    }
  }
}

class RotatedKernelTest : public LossyTest {};

TEST_P(RotatedKernelTest, IsTheReference) {
  const Element element = GetParam();
  for (const uint32_t bits : kWidths) {
    for (const auto& [count, heads, dim] : kShapes) {
      Rows rows(element, count, heads * dim, 51);
      std::vector<uint8_t> expected(count * RotatedRecordBytes(heads, dim, bits));
      uint64_t expected_nonfinite = 0;
      reference::RotatedEncode(element, bits, rows.read(), count, heads, dim, expected.data(),
                               &expected_nonfinite);
      Rows decoded(element, count, heads * dim, 52);
      decoded.Clear();
      reference::RotatedDecode(element, bits, expected.data(), count, heads, dim, decoded.write());
      ForTargets([&, count = count, heads = heads, dim = dim] {
        std::vector<uint8_t> record(expected.size() + 1, 0x5a);
        uint64_t nonfinite = 0;
        RotatedEncode(element, bits, rows.read(), count, heads, dim, record.data(), &nonfinite);
        EXPECT_EQ(record.back(), 0x5a);
        record.pop_back();
        EXPECT_EQ(record, expected) << bits << " " << count << " " << heads << " " << dim;
        EXPECT_EQ(nonfinite, expected_nonfinite);
        Rows out(element, count, heads * dim, 53);
        out.Clear();
        RotatedDecode(element, bits, record.data(), count, heads, dim, out.write());
        EXPECT_EQ(out.memory(), decoded.memory()) << bits << " " << count << " " << heads << " " << dim;
      });
    }
  }
}

TEST_P(RotatedKernelTest, HostileRecordsAreTheReferenceAndFinite) {
  const Element element = GetParam();
  std::mt19937 random(61);
  constexpr size_t kTokens = 3, kHeads = 2, kDim = 80;
  Rows expected(element, kTokens, kHeads * kDim, 62), out(element, kTokens, kHeads * kDim, 63);
  for (int round = 0; round < 100; ++round) {
    for (const uint32_t bits : kWidths) {
      std::vector<uint8_t> record(kTokens * RotatedRecordBytes(kHeads, kDim, bits));
      for (uint8_t& byte : record) byte = static_cast<uint8_t>(random() % 3 == 0 ? 0xff : random());
      reference::RotatedDecode(element, bits, record.data(), kTokens, kHeads, kDim, expected.write());
      ForTargets([&] {
        RotatedDecode(element, bits, record.data(), kTokens, kHeads, kDim, out.write());
        for (size_t r = 0; r < kTokens; ++r) {
          ASSERT_EQ(std::memcmp(out.read()[r], expected.read()[r], kHeads * kDim * Width(element)), 0);
          for (size_t c = 0; c < kHeads * kDim; ++c)
            ASSERT_TRUE(std::isfinite(LoadElement(element, out.read()[r], c)));
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, RotatedKernelTest,
                         testing::Values(Element::kF32, Element::kF16, Element::kBf16), ElementOf);

}  // namespace
}  // namespace kvt::kernels
