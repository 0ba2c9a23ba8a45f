#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "common/convert.h"
#include "unit/model/model_options.h"

namespace kvt {
namespace {

constexpr uint32_t kLayers = 2, kHeads = 2, kDim = 80, kTokens = 70;

struct Case {
  const char* name;
  uint32_t element, style, offset, dims;
  double base, magnitude;
  bool factors, paged;
  int64_t spread;  // element stride over element size
  uint64_t first_position;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

double Load(uint32_t element, const uint8_t* at) {
  if (element == KVT_ELEMENT_F32) return LoadLe<float>(at);
  const uint16_t bits = LoadLe<uint16_t>(at);
  return element == KVT_ELEMENT_F16 ? kernels::F16ToF32(bits) : kernels::Bf16ToF32(bits);
}

void Store(uint32_t element, uint8_t* at, float value) {
  if (element == KVT_ELEMENT_F32) return StoreLe(at, value);
  StoreLe(at, element == KVT_ELEMENT_F16 ? kernels::F32ToF16(value) : kernels::F32ToBf16(value));
}

// Half of the distance to the next value, relative.
double HalfUlp(uint32_t element) {
  return element == KVT_ELEMENT_F32 ? 0x1p-24 : element == KVT_ELEMENT_F16 ? 0x1p-11 : 0x1p-8;
}

// A host's rows, with an address function written from the header's formula alone.
class Host {
 public:
  explicit Host(const Case& c) : c_(c), size_(static_cast<int64_t>(ElementBytes(c.element))) {
    const int64_t row = size_ * c.spread * kDim, token = row * kHeads, page = token * 7 + 32;
    memory_.resize(static_cast<size_t>(kLayers) * 2 * static_cast<size_t>(page) * 20, 0xa5);
    kvt_view_init(&view, sizeof view);
    view.element = c.element;
    view.layer_begin = 1, view.layer_end = 1 + kLayers, view.head_begin = 1, view.head_end = 1 + kHeads;
    for (int s = 0; s < 2; ++s) {
      view.element_stride[s] = size_ * c.spread;
      view.head_stride[s] = row;
      view.token_stride[s] = token;
      view.page_stride[s] = page;
    }
    if (c.paged) {
      for (int32_t i = 0; i < 10; ++i) table_.push_back((i * 7 + 3) % 19);
      view.block_table = table_.data(), view.block_table_len = table_.size(), view.page_tokens = 7;
    }
    for (size_t i = 0; i < kLayers * 2; ++i)
      bases_.push_back(memory_.data() + i * memory_.size() / (kLayers * 2));
    view.bases = bases_.data(), view.base_count = bases_.size();
    view.tokens = kTokens, view.first_position = c.first_position;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    ForEach([&](uint8_t* at) { Store(c_.element, at, normal(random)); });
  }

  uint8_t* At(uint32_t layer, uint32_t token, uint32_t head, uint32_t e) {
    uint8_t* row = static_cast<uint8_t*>(bases_[layer * 2]);
    if (c_.paged) {
      row += table_[token / 7] * view.page_stride[0] + token % 7 * view.token_stride[0];
    } else {
      row += token * view.token_stride[0];
    }
    return row + head * view.head_stride[0] + e * view.element_stride[0];
  }

  template <typename F>
  void ForEach(F f) {
    for (uint32_t l = 0; l < kLayers; ++l)
      for (uint32_t t = 0; t < kTokens; ++t)
        for (uint32_t h = 0; h < kHeads; ++h)
          for (uint32_t e = 0; e < kDim; ++e) f(At(l, t, h, e));
  }

  std::vector<uint8_t>& memory() { return memory_; }
  kvt_view_t view;

 private:
  const Case c_;
  const int64_t size_;
  std::vector<uint8_t> memory_;
  std::vector<void*> bases_;
  std::vector<int32_t> table_;
};

class RopeTest : public testing::TestWithParam<Case> {
 protected:
  RopeTest() {
    kvt_model_options_t options = KvOptions();
    const Case& c = GetParam();
    options.k_dim = kDim;
    options.rope_style = c.style;
    options.rope_offset = c.offset;
    options.rope_dims = c.dims;
    options.rope_base = c.base;
    options.rope_magnitude = c.magnitude;
    if (c.factors) {
      for (uint32_t i = 0; i < c.dims / 2; ++i) factors_.push_back(1 + 0.37 * i);
      options.rope_factors = factors_.data();
      options.rope_factor_count = factors_.size();
    }
    model_ = MakeModel(options);
  }

  void Turn(Host* host, uint64_t begin, uint64_t count, bool undo) {
    const auto view = View::Check(*model_, &host->view);
    ASSERT_TRUE(view.ok()) << view.status();
    const Status status = TurnRope(*model_, *view, begin, count, undo);
    ASSERT_TRUE(status.ok()) << status;
  }

  // Elements of pair `i` in a row.
  std::pair<uint32_t, uint32_t> Pair(uint32_t i) const {
    const Case& c = GetParam();
    if (c.style == KVT_ROPE_INTERLEAVED) return {c.offset + 2 * i, c.offset + 2 * i + 1};
    return {c.offset + i, c.offset + i + c.dims / 2};
  }

  std::vector<double> factors_;
  std::shared_ptr<const Model> model_;
};

// Applied or undone, each element is within half a unit in the last place of the exact rotation; all other
// bytes of the host's memory are as they were.
TEST_P(RopeTest, MatchesTheExactRotationAndTouchesNothingElse) {
  const Case& c = GetParam();
  for (const bool undo : {false, true}) {
    Host before(c), after(c);
    constexpr uint32_t kBegin = 3, kCount = 66;
    Turn(&after, kBegin, kCount, undo);
    for (uint32_t l = 0; l < kLayers; ++l) {
      for (uint32_t t = kBegin; t < kBegin + kCount; ++t) {
        for (uint32_t i = 0; i < c.dims / 2; ++i) {
          long double frequency = powl(c.base, -2.0L * i / c.dims);
          if (c.factors) frequency /= static_cast<long double>(factors_[i]);
          const long double angle =
              static_cast<long double>(c.first_position + t) * frequency * (undo ? -1 : 1);
          const long double scale = undo ? 1 / static_cast<long double>(c.magnitude) : c.magnitude;
          for (uint32_t h = 0; h < kHeads; ++h) {
            const auto [first, second] = Pair(i);
            uint8_t *const at_a = before.At(l, t, h, first), *const at_b = before.At(l, t, h, second);
            const long double a = Load(c.element, at_a), b = Load(c.element, at_b);
            const long double wanted[2] = {scale * (a * cosl(angle) - b * sinl(angle)),
                                           scale * (a * sinl(angle) + b * cosl(angle))};
            uint8_t* const got[2] = {after.At(l, t, h, first), after.At(l, t, h, second)};
            for (int side = 0; side < 2; ++side) {
              // An angle of 131,072 in double is off by up to 2e-11; the last term is for subnormal results.
              const long double allowed =
                  HalfUlp(c.element) * fabsl(wanted[side]) + 4e-11L * scale * hypotl(a, b) + 0x1p-25L;
              ASSERT_LE(fabsl(Load(c.element, got[side]) - wanted[side]), allowed)
                  << "layer " << l << " token " << t << " head " << h << " pair " << i << " side " << side;
            }
            // Put the turned elements back, so that what is left must be equal.
            std::memcpy(got[0], at_a, ElementBytes(c.element));
            std::memcpy(got[1], at_b, ElementBytes(c.element));
          }
        }
      }
    }
    EXPECT_TRUE(before.memory() == after.memory()) << "bytes outside of the turned elements changed";
  }
}

TEST_P(RopeTest, UndoAfterApplyGivesTheRowBack) {
  const Case& c = GetParam();
  Host before(c), after(c);
  Turn(&after, 0, kTokens, false);
  EXPECT_FALSE(before.memory() == after.memory());
  Turn(&after, 0, kTokens, true);
  for (uint32_t l = 0; l < kLayers; ++l) {
    for (uint32_t t = 0; t < kTokens; ++t) {
      for (uint32_t h = 0; h < kHeads; ++h) {
        for (uint32_t i = 0; i < c.dims / 2; ++i) {
          const auto [first, second] = Pair(i);
          const double a = Load(c.element, before.At(l, t, h, first)),
                       b = Load(c.element, before.At(l, t, h, second));
          // Two roundings, each by half a unit of at most the pair's length, the first one turned.
          const double allowed = 2.5 * HalfUlp(c.element) * std::hypot(a, b) + 0x1p-24;
          ASSERT_NEAR(Load(c.element, after.At(l, t, h, first)), a, allowed);
          ASSERT_NEAR(Load(c.element, after.At(l, t, h, second)), b, allowed);
        }
      }
    }
  }
}

constexpr uint64_t kFar = 131072 - kTokens + 1;
INSTANTIATE_TEST_SUITE_P(
    Cases, RopeTest,
    testing::Values(
        Case{"f32_interleaved_far", KVT_ELEMENT_F32, 1, 0, 80, 10000, 1, false, false, 1, kFar},
        Case{"f32_half_split_far", KVT_ELEMENT_F32, 2, 0, 80, 500000, 1, false, false, 1, kFar},
        Case{"f16_interleaved", KVT_ELEMENT_F16, 1, 0, 80, 100000, 1, false, false, 1, 0},
        Case{"f16_interleaved_far_paged", KVT_ELEMENT_F16, 1, 0, 80, 100000, 1, false, true, 1, kFar},
        Case{"f16_half_split_far_spread", KVT_ELEMENT_F16, 2, 0, 80, 10000, 1, false, false, 3, kFar},
        Case{"bf16_half_split_far_paged", KVT_ELEMENT_BF16, 2, 0, 80, 1000000, 1, false, true, 1, kFar},
        Case{"bf16_interleaved_spread", KVT_ELEMENT_BF16, 1, 0, 80, 10000, 1, false, false, 2, 4096},
        Case{"f16_partial_offset", KVT_ELEMENT_F16, 1, 48, 32, 10000, 1, false, true, 1, 1000},
        Case{"f32_partial_half_split", KVT_ELEMENT_F32, 2, 6, 64, 10000, 1, false, true, 2, kFar},
        Case{"f16_factors_magnitude", KVT_ELEMENT_F16, 2, 0, 64, 10000, 1.25, true, false, 1, kFar},
        Case{"f32_factors_magnitude", KVT_ELEMENT_F32, 1, 16, 64, 10000, 0.75, true, true, 1, kFar},
        Case{"bf16_one_pair", KVT_ELEMENT_BF16, 2, 78, 2, 10000, 1, false, false, 1, 131000}),
    [](const testing::TestParamInfo<Case>& c) { return std::string(c.param.name); });

class RopeAbiTest : public testing::Test {
 protected:
  RopeAbiTest() {
    kvt_view_init(&view_, sizeof view_);
    view_.layer_end = 1, view_.head_end = 1, view_.bases = &base_, view_.base_count = 1, view_.tokens = 4;
    view_.token_stride[0] = 1152, view_.element_stride[0] = 2;
    kvt_model_options_t options = MlaOptions();
    EXPECT_EQ(kvt_model_create(&options, &model_), KVT_OK);
  }
  ~RopeAbiTest() override { kvt_model_destroy(model_); }

  std::vector<uint16_t> rows_ = std::vector<uint16_t>(4 * 576, 0x3c00);
  void* base_ = rows_.data();
  kvt_view_t view_;
  kvt_model_t model_ = 0;
};

TEST_F(RopeAbiTest, MlaTurnsTheRotatedPartOfTheLatent) {
  ASSERT_EQ(kvt_model_rope(model_, &view_, 1, 1, 0), KVT_OK);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (i < 576 + 512 || i >= 2 * 576) {
      EXPECT_EQ(rows_[i], 0x3c00) << i;
    }
  }
  // Pair 0 at position 1: (cos 1 - sin 1, sin 1 + cos 1).
  EXPECT_NEAR(kernels::F16ToF32(rows_[576 + 512]), -0.30117, 2e-4);
  EXPECT_NEAR(kernels::F16ToF32(rows_[576 + 513]), 1.38177, 1e-3);
}

TEST_F(RopeAbiTest, RefusesWhatItCannotTurn) {
  EXPECT_EQ(kvt_model_rope(model_, &view_, 0, 5, 0), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(kvt_model_rope(model_, &view_, 5, 0, 0), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(kvt_model_rope(model_, &view_, 1, UINT64_MAX, 0), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(kvt_model_rope(model_, &view_, 4, 0, 0), KVT_OK);
  EXPECT_EQ(kvt_model_rope(model_, &view_, 0, 1, 2), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_model_rope(model_, nullptr, 0, 1, 0), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_model_rope(0, &view_, 0, 1, 0), KVT_ERR_STALE_HANDLE);
  view_.element = KVT_ELEMENT_FP8_E4M3;
  EXPECT_EQ(kvt_model_rope(model_, &view_, 0, 1, 0), KVT_ERR_UNSUPPORTED);
  view_.element = KVT_ELEMENT_F16;
  view_.memory = KVT_MEMORY_CUDA;
  EXPECT_EQ(kvt_model_rope(model_, &view_, 0, 1, 0), KVT_ERR_UNAVAILABLE);
  view_.memory = KVT_MEMORY_HOST;
  view_.head_end = 2;
  EXPECT_EQ(kvt_model_rope(model_, &view_, 0, 1, 0), KVT_ERR_MISMATCH);
  EXPECT_TRUE(std::all_of(rows_.begin(), rows_.end(), [](uint16_t row) { return row == 0x3c00; }));
}

TEST_F(RopeAbiTest, NonFiniteRowsStayNonFinite) {
  rows_[576 + 512] = 0x7e00;
  rows_[576 + 514] = 0x7c00;
  ASSERT_EQ(kvt_model_rope(model_, &view_, 1, 1, 0), KVT_OK);
  EXPECT_TRUE(std::isnan(kernels::F16ToF32(rows_[576 + 512])));
  EXPECT_TRUE(std::isnan(kernels::F16ToF32(rows_[576 + 513])));
  EXPECT_FALSE(std::isfinite(kernels::F16ToF32(rows_[576 + 514])));
}

}  // namespace
}  // namespace kvt
