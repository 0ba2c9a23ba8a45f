// Choices of tokens out of rows whose positions have gaps, as they come from a sequence that was thinned
// before.
#include "kvartet/selection_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kvartet/half.h"

namespace kvt::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr int32_t kDim = 8;
constexpr uint16_t kOne = 0x3c00, kTwo = 0x4000;  // in f16

engine::Geometry Tiny() {
  engine::Geometry geometry;
  geometry.kv = {.layers = 2, .kv_heads = 1, .head_dim_k = kDim, .head_dim_v = kDim};
  geometry.heads = 2;
  return geometry;
}

// Keys have one element set, by the token's index; values are 1.
engine::KvBlob RowsAt(std::vector<int32_t> positions) {
  engine::KvBlob rows = Take(engine::KvBlob::Create(Tiny().kv, std::move(positions)), "rows");
  for (int32_t layer = 0; layer < 2; ++layer) {
    const engine::RowView k = rows.K(layer), v = rows.V(layer);
    for (int32_t token = 0; token < rows.tokens(); ++token) {
      for (int32_t e = 0; e < kDim; ++e) {
        const uint16_t key = e == token % kDim ? kTwo : 0;
        std::memcpy(k.base + token * k.token_stride + e * k.element_stride, &key, sizeof key);
        std::memcpy(v.base + token * v.token_stride + e * v.element_stride, &kOne, sizeof kOne);
      }
    }
  }
  return rows;
}

std::vector<int32_t> Positions(int32_t count, int32_t step) {
  std::vector<int32_t> positions(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) positions[static_cast<size_t>(i)] = i * step;
  return positions;
}

// Queries of the last `count` of these positions, which look for keys of one element.
engine::Captured Looking(const std::vector<int32_t>& positions, size_t count, size_t element) {
  engine::Captured captured;
  captured.layers = 2;
  captured.heads = 2;
  captured.dim = kDim;
  captured.positions.assign(positions.end() - static_cast<ptrdiff_t>(count), positions.end());
  captured.queries.resize(2 * 2 * count * kDim);
  for (size_t i = element; i < captured.queries.size(); i += kDim) captured.queries[i] = 8;
  return captured;
}

class SelectionPolicyTest : public ::testing::Test {
 protected:
  SelectionPolicy Policy(const char* label, uint32_t budget, uint32_t first = 2,
                         const ThoughtThresholds& thresholds = {}) {
    SelectionMethod method;
    for (const std::vector<SelectionMethod>& methods : {PrefillMethods(), LongMethods()}) {
      for (const SelectionMethod& each : methods) {
        if (each.label == label) method = each;
      }
    }
    return {model_, method, {.budget = budget, .first = first, .window = 4, .thresholds = thresholds}};
  }

  const Model model_ = MakeModel(Tiny());
  const std::vector<int32_t> positions_ = Positions(40, 3);
  const engine::KvBlob rows_ = RowsAt(positions_);
};

TEST_F(SelectionPolicyTest, EachSaysWhatItWantsToSee) {
  EXPECT_EQ(Policy("recent", 10).Observed(16), 0);
  EXPECT_EQ(Policy("snapkv", 10).Observed(16), 4);
  EXPECT_EQ(Policy("rkv", 10).Observed(3), 3);
  EXPECT_EQ(Policy("thinkv", 10).Observed(16), 16);
}

TEST_F(SelectionPolicyTest, RecentKeepsBothEnds) {
  EXPECT_THAT(Policy("recent", 8).Choose(rows_, {}), ElementsAre(0, 1, 34, 35, 36, 37, 38, 39));
}

TEST_F(SelectionPolicyTest, SnapkvKeepsWhatTheQueriesLookAt) {
  // Tokens 5, 13 and so on are looked at, and their neighbours are pooled with them; the earlier ones come
  // first.
  EXPECT_THAT(Policy("snapkv", 14).Choose(rows_, Looking(positions_, 4, 5)),
              ElementsAre(0, 1, 3, 4, 5, 6, 7, 11, 12, 13, 36, 37, 38, 39));
  EXPECT_THAT(Policy("snapkv", 14).Choose(rows_, Looking(positions_, 4, 1)), Not(Contains(13u)));
}

TEST_F(SelectionPolicyTest, ABudgetForAllKeepsAll) {
  for (const char* method : {"recent", "snapkv", "rkv", "thinkv"})
    EXPECT_EQ(Policy(method, 40).Choose(rows_, Looking(positions_, 4, 5)).size(), 40u) << method;
}

TEST_F(SelectionPolicyTest, ThinkvThinsEarlierThoughtsAndKeepsTheLast) {
  SelectionPolicy policy = Policy("thinkv", 40, 8);
  std::vector<int32_t> held = Positions(40, 1);
  EXPECT_EQ(policy.Choose(RowsAt(held), Looking(held, 32, 5)).size(), 40u);
  for (int32_t next = 40; next < 72; ++next) held.push_back(next);
  const std::vector<uint32_t> kept = policy.Choose(RowsAt(held), Looking(held, 32, 5));
  // 8 of the prompt, one in 32 of the first thought, all 32 of the second: as far as thinning reaches.
  ASSERT_EQ(kept.size(), 41u);
  EXPECT_EQ(kept[7], 7u);
  EXPECT_EQ(kept[9], 40u);
}

// What was looked at sparsely is a transition when both thresholds are below its sparsity: the thoughts
// before it are thinned though all would fit. Between the thresholds, and below both, everything stays.
TEST_F(SelectionPolicyTest, ThinkvThinsAfterATransitionWhateverTheBudget) {
  const auto kept = [&](float low, float high) {
    SelectionPolicy policy = Policy("thinkv", 100, 8, std::pair(low, high));
    std::vector<int32_t> held = Positions(72, 1);
    std::vector<int32_t> before(held.begin(), held.begin() + 40);
    EXPECT_EQ(policy.Choose(RowsAt(before), Looking(before, 32, 5)).size(), 40u);
    return policy.Choose(RowsAt(held), Looking(held, 32, 5)).size();
  };
  EXPECT_LT(kept(0, 0), 72u);
  EXPECT_EQ(kept(0, 1), 72u);
  EXPECT_EQ(kept(1, 1), 72u);
}

TEST_F(SelectionPolicyTest, OnlyCamMerges) {
  const engine::Captured captured = Looking(positions_, 4, 5);
  SelectionPolicy merging = Policy("snapkv+cam", 14);
  const std::vector<uint32_t> kept = merging.Choose(rows_, captured);
  engine::KvBlob rows = RowsAt(positions_);
  EXPECT_FALSE(Policy("snapkv", 14).Merge(&rows, captured, kept));
  EXPECT_TRUE(std::ranges::equal(rows.bytes(), rows_.bytes()));
  std::vector<uint32_t> all(40);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_FALSE(merging.Merge(&rows, captured, all));

  EXPECT_TRUE(merging.Merge(&rows, captured, kept));
  std::vector<float> row(kDim), key(kDim);
  float most = 0;
  for (int32_t token = 0; token < 40; ++token) {
    ReadHead(rows.V(0), token, 0, row);
    most = std::max(most, row[0]);
    if (!std::ranges::binary_search(kept, static_cast<uint32_t>(token))) {
      EXPECT_EQ(row[0], 1) << token;
    }
    ReadHead(rows.K(0), token, 0, row);
    ReadHead(rows_.K(0), token, 0, key);
    EXPECT_EQ(row, key) << token;
  }
  EXPECT_GT(most, 1);
}

TEST_F(SelectionPolicyTest, ThresholdsNeedPiecesOfThreeKinds) {
  const std::vector<int32_t> few = Positions(200, 1), many = Positions(600, 1);
  EXPECT_FALSE(FindThresholds(model_, RowsAt(few), Looking(few, 160, 5)).has_value());
  EXPECT_FALSE(FindThresholds(model_, RowsAt(many), Looking(many, 544, 5)).has_value());
  // Pieces that look at all tokens, at half of them and at an eighth.
  engine::Captured captured = Looking(many, 576, 0);
  const size_t looked_at[] = {0, 4, 1};
  for (size_t i = 0; i < captured.queries.size(); ++i)
    captured.queries[i] = i % kDim < looked_at[i / kDim % captured.rows() / 32 % 3] ? 8 : 0;
  const ThoughtThresholds thresholds = FindThresholds(model_, RowsAt(many), captured);
  ASSERT_TRUE(thresholds.has_value());
  EXPECT_LT(thresholds->first, thresholds->second);
}

}  // namespace
}  // namespace kvt::cli
