// Rows of difficult values, and a run of every instruction set that this processor has, for tests of the
// lossy codecs' kernels against their scalar reference.
#ifndef KVARTET_TESTS_UNIT_KERNELS_LOSSY_FIXTURE_H_
#define KVARTET_TESTS_UNIT_KERNELS_LOSSY_FIXTURE_H_

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "common/element.h"

namespace kvt::kernels {

inline size_t Width(Element element) { return element == Element::kF32 ? 4 : 2; }

// Rows with ordinary values, constants, extremes, NaN and infinities, each row at an odd address.
class Rows {
 public:
  Rows(Element element, size_t count, size_t channels, uint32_t seed)
      : bytes_(channels * Width(element) + 1), memory_(count * bytes_ + 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 3);
    const float special[] = {std::nanf(""),
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             65504.0f,
                             -65504.0f,
                             3e38f,
                             1e-8f,
                             -0.0f,
                             0.0f,
                             6e-5f};
    for (size_t r = 0; r < count; ++r) {
      rows_.push_back(memory_.data() + 1 + r * bytes_);
      const uint32_t kind = random() % 4;
      for (size_t c = 0; c < channels; ++c) {
        float value = normal(random);
        if (kind == 1) value = 0.125f;
        if (kind == 2 && random() % 8 == 0) value = special[random() % std::size(special)];
        if (kind == 3) value = value * 1e-5f + 100.0f;
        StoreElement(element, value, rows_.back(), c);
      }
    }
  }
  const void* const* read() const { return rows_.data(); }
  void* const* write() { return rows_.data(); }
  void Clear() { std::fill(memory_.begin(), memory_.end(), 0xa5); }
  const std::vector<uint8_t>& memory() const { return memory_; }

 private:
  size_t bytes_;
  std::vector<uint8_t> memory_;
  std::vector<void*> rows_;
};

class LossyTest : public testing::TestWithParam<Element> {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  // Runs `body` once for each instruction set.
  template <typename Body>
  void ForTargets(const Body& body) {
    hwy::SetSupportedTargetsForTest(0);
    const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
    ASSERT_FALSE(targets.empty());
    for (const int64_t target : targets) {
      hwy::SetSupportedTargetsForTest(target);
      SCOPED_TRACE(hwy::TargetName(target));
      body();
    }
  }
};

struct Shape {
  size_t count, heads, dim;
};
inline constexpr Shape kShapes[] = {{1, 1, 1},  {3, 3, 64},  {5, 1, 576}, {2, 2, 7},
                                    {33, 1, 5}, {2, 8, 128}, {4, 5, 80},  {1, 1, 8192}};

inline std::string ElementOf(const testing::TestParamInfo<Element>& element) {
  return element.param == Element::kF32 ? "f32" : element.param == Element::kF16 ? "f16" : "bf16";
}

}  // namespace kvt::kernels

#endif  // KVARTET_TESTS_UNIT_KERNELS_LOSSY_FIXTURE_H_
