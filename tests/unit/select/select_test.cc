// The policies against plain references, and what they promise: sinks, window, budget, determinism.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "select/redundancy.h"
#include "unit/select/select_fixture.h"

namespace kvt::test {
namespace {

using ::testing::ElementsAre;

kvt_select_options_t Options(uint32_t policy, uint32_t budget) {
  kvt_select_options_t options = DefaultSelectOptions();
  options.policy = policy;
  options.budget = budget;
  options.sinks = 2;
  options.window = 6;
  return options;
}

std::vector<uint32_t> Kept(const std::vector<double>& scores, uint64_t tokens,
                           const kvt_select_options_t& options) {
  std::vector<uint32_t> order(tokens - options.sinks - options.window);
  std::iota(order.begin(), order.end(), options.sinks);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  order.resize(options.budget - options.sinks - options.window);
  for (uint32_t t = 0; t < options.sinks; ++t) order.push_back(t);
  for (uint64_t t = tokens - options.window; t < tokens; ++t) order.push_back(static_cast<uint32_t>(t));
  std::sort(order.begin(), order.end());
  return order;
}

// SnapKV's score of a layer and KV head, straight from its definition.
std::vector<double> SnapkvReference(Scene* scene, uint32_t layer, uint32_t head, uint32_t rows,
                                    uint64_t tokens, const kvt_select_options_t& options) {
  const uint64_t candidates = tokens - options.window;
  std::vector<double> sums(candidates), pooled(candidates);
  for (uint32_t h = head * Scene::kGroup; h < (head + 1) * Scene::kGroup; ++h) {
    for (uint32_t r = 0; r < rows; ++r) {
      const std::vector<double> weights = scene->Reference(layer, h, r);
      for (uint64_t t = 0; t < candidates; ++t) sums[t] += weights[t];
    }
  }
  const int64_t reach = options.pool / 2;
  for (int64_t t = 0; t < static_cast<int64_t>(candidates); ++t) {
    for (int64_t i = std::max<int64_t>(t - reach, 0); i <= std::min<int64_t>(t + reach, candidates - 1);
         ++i) {
      const double value = sums[static_cast<size_t>(i)];
      double& to = pooled[static_cast<size_t>(t)];
      to = options.pooling == KVT_POOL_MAX ? std::max(to, value) : to + value;
    }
  }
  return pooled;
}

class SnapkvTest : public testing::TestWithParam<uint32_t> {};

TEST_P(SnapkvTest, EachHeadIsAsDefined) {
  constexpr uint64_t kTokens = 90;
  constexpr uint32_t kRows = 8;
  kvt_select_options_t options = Options(KVT_SELECT_SNAPKV, 30);
  options.pooling = GetParam();
  for (const Layout layout : {Layout::kDense, Layout::kPaged, Layout::kStrided}) {
    Scene scene(kTokens, kRows, layout);
    std::vector<uint32_t> expected;
    for (uint32_t layer = 0; layer < scene.model()->layers(); ++layer) {
      for (uint32_t head = 0; head < scene.model()->kv_heads(); ++head) {
        const auto kept =
            Kept(SnapkvReference(&scene, layer, head, kRows, kTokens, options), kTokens, options);
        expected.insert(expected.end(), kept.begin(), kept.end());
      }
    }
    EXPECT_EQ(scene.Choose(options), expected);
    scene.GiveRows();
    EXPECT_EQ(scene.Choose(options), expected);
  }
}

TEST_P(SnapkvTest, ASequenceSumsItsHeads) {
  constexpr uint64_t kTokens = 70;
  constexpr uint32_t kRows = 5;
  kvt_select_options_t options = Options(KVT_SELECT_SNAPKV, 20);
  options.pooling = GetParam();
  options.scope = KVT_SELECT_SEQUENCE;
  Scene scene(kTokens, kRows);
  std::vector<double> total(kTokens - options.window);
  for (uint32_t layer = 0; layer < scene.model()->layers(); ++layer) {
    for (uint32_t head = 0; head < scene.model()->kv_heads(); ++head) {
      const auto scores = SnapkvReference(&scene, layer, head, kRows, kTokens, options);
      for (size_t t = 0; t < total.size(); ++t) total[t] += scores[t];
    }
  }
  EXPECT_EQ(scene.Choose(options), Kept(total, kTokens, options));
}

INSTANTIATE_TEST_SUITE_P(All, SnapkvTest, testing::Values(KVT_POOL_AVERAGE, KVT_POOL_MAX));

TEST(SelectTest, AttendedTokensStay) {
  Scene scene(100, 4);
  // Every query looks at token 41 of its own layer and head.
  for (uint32_t layer = 0; layer < scene.model()->layers(); ++layer)
    for (uint32_t head = 0; head < scene.heads(); ++head)
      for (uint32_t row = 0; row < 4; ++row)
        for (uint32_t e = 0; e < scene.dim(); ++e)
          scene.Query(layer, head, row, e) = 3 * scene.memory().Get(layer, 0, 41, head / Scene::kGroup, e);
  kvt_select_options_t options = Options(KVT_SELECT_SNAPKV, 9);
  options.pool = 1;
  options.scope = KVT_SELECT_SEQUENCE;
  EXPECT_THAT(scene.Choose(options), ElementsAre(0, 1, 41, 94, 95, 96, 97, 98, 99));
}

TEST(SelectTest, RecentNeedsNoAttention) {
  const auto model = MakeModel({});
  const Memory memory(model, Layout::kDense, KVT_ELEMENT_FP8_E4M3, 20);
  kvt_select_options_t options = Options(KVT_SELECT_RECENT, 10);
  options.scope = KVT_SELECT_SEQUENCE;
  const auto selector = Selector::Check(options);
  ASSERT_TRUE(selector.ok());
  ASSERT_TRUE(selector->CheckInput(memory.view(), nullptr).ok());
  EXPECT_THAT(selector->Choose(*model, memory.view(), nullptr),
              ElementsAre(0, 1, 12, 13, 14, 15, 16, 17, 18, 19));
  options.scope = KVT_SELECT_EACH_HEAD;
  EXPECT_EQ(Selector::Check(options)->Choose(*model, memory.view(), nullptr).size(), 4u * 10);
}

TEST(SelectTest, ABudgetBeyondTheSequenceKeepsAll) {
  for (const uint32_t policy : {KVT_SELECT_RECENT, KVT_SELECT_SNAPKV, KVT_SELECT_RKV}) {
    for (const uint64_t tokens : {1, 3, 7, 12}) {
      Scene scene(tokens, 1);
      kvt_select_options_t options = Options(policy, 12);
      options.scope = KVT_SELECT_SEQUENCE;
      std::vector<uint32_t> all(tokens);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(scene.Choose(options), all) << policy << " " << tokens;
    }
  }
}

TEST(SelectTest, EqualScoresGoToTheEarlierToken) {
  Scene scene(40, 2);
  for (uint32_t layer = 0; layer < scene.model()->layers(); ++layer)
    for (uint32_t head = 0; head < scene.heads(); ++head)
      for (uint32_t row = 0; row < 2; ++row)
        for (uint32_t e = 0; e < scene.dim(); ++e) scene.Query(layer, head, row, e) = 0;
  kvt_select_options_t options = Options(KVT_SELECT_SNAPKV, 11);
  options.pool = 1;
  options.scope = KVT_SELECT_SEQUENCE;
  EXPECT_THAT(scene.Choose(options), ElementsAre(0, 1, 2, 3, 4, 34, 35, 36, 37, 38, 39));
}

TEST(SelectTest, NonfiniteInputStillChooses) {
  const float nan = std::nanf(""), infinity = INFINITY;
  for (const uint32_t policy : {KVT_SELECT_SNAPKV, KVT_SELECT_RKV}) {
    Scene scene(50, 3);
    scene.memory().Set(0, 0, 10, 0, 3, nan);
    scene.memory().Set(0, 0, 11, 1, 3, infinity);
    scene.memory().Set(1, 0, 12, 1, 3, -infinity);
    scene.Query(0, 1, 2, 4) = nan;
    scene.Query(1, 2, 0, 4) = infinity;
    const kvt_select_options_t options = Options(policy, 20);
    const auto chosen = scene.Choose(options);
    ASSERT_EQ(chosen.size(), 4u * 20);
    for (size_t choice = 0; choice < 4; ++choice) {
      const auto begin = chosen.begin() + static_cast<ptrdiff_t>(choice * 20);
      EXPECT_TRUE(std::adjacent_find(begin, begin + 20, std::greater_equal<>()) == begin + 20);
      EXPECT_LT(*(begin + 19), 50u);
    }
  }
}

TEST(RedundancyTest, IsAsDefined) {
  constexpr size_t kTokens = 70, kWidth = 5;
  Rows keys;
  keys.width = kWidth;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  for (size_t i = 0; i < kTokens * kWidth; ++i) keys.values.push_back(normal(random));
  std::vector<double> means(kTokens), expected(kTokens);
  for (size_t i = 0; i < kTokens; ++i) {
    std::vector<double> cosines(kTokens);
    for (size_t j = 0; j < kTokens; ++j) {
      double dot = 0, left = 0, right = 0;
      for (size_t c = 0; c < kWidth; ++c) {
        const double x = double{keys.row(i)[c]}, y = double{keys.row(j)[c]};
        dot += x * y;
        left += x * x;
        right += y * y;
      }
      cosines[j] = i == j ? 0 : dot / std::sqrt(left * right);
    }
    for (size_t j = kTokens; j-- > 0;) {
      if (cosines[j] > 0.5) {
        cosines[j] = 0;
        break;
      }
    }
    for (size_t j = 0; j < kTokens; ++j) means[j] += cosines[j] / kTokens;
  }
  double sum = 0;
  for (size_t j = 0; j < kTokens; ++j) sum += expected[j] = std::exp(means[j]);
  const std::vector<float> measured = Redundancy(keys, 0.5f);
  for (size_t j = 0; j < kTokens; ++j) EXPECT_NEAR(measured[j], expected[j] / sum, 1e-6) << j;
}

TEST(RkvTest, OfManyAlikeTheNewestStays) {
  constexpr uint32_t kTokens = 20;
  Scene scene(kTokens, 2);
  // Keys are orthogonal, but tokens 3, 6, 9 and 12 have one; nobody is looked at more than others.
  for (uint32_t layer = 0; layer < scene.model()->layers(); ++layer) {
    for (uint32_t head = 0; head < scene.model()->kv_heads(); ++head) {
      for (uint32_t token = 0; token < kTokens; ++token) {
        const uint32_t axis = token % 3 == 0 && token >= 3 && token <= 12 ? 3 : token;
        for (uint32_t e = 0; e < scene.dim(); ++e)
          scene.memory().Set(layer, 0, token, head, e, e == axis ? 1 : 0);
      }
    }
    for (uint32_t head = 0; head < scene.heads(); ++head)
      for (uint32_t row = 0; row < 2; ++row)
        for (uint32_t e = 0; e < scene.dim(); ++e) scene.Query(layer, head, row, e) = 0;
  }
  kvt_select_options_t options = Options(KVT_SELECT_RKV, 17);
  options.scope = KVT_SELECT_SEQUENCE;
  EXPECT_THAT(scene.Choose(options),
              ElementsAre(0, 1, 2, 4, 5, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19));
}

TEST(RkvTest, WithoutRedundancyItIsAttention) {
  constexpr uint64_t kTokens = 80;
  kvt_select_options_t options = Options(KVT_SELECT_RKV, 24);
  options.relevance = 1;
  options.pool = 1;
  Scene scene(kTokens, 1);
  const auto chosen = scene.Choose(options);
  // One row: the highest of the group's logits, so the group's order by the larger logit.
  std::vector<double> highest(kTokens);
  for (uint64_t t = 0; t < kTokens; ++t) {
    double best = -1e300;
    for (uint32_t h = 0; h < Scene::kGroup; ++h) {
      double logit = 0;
      for (uint32_t e = 0; e < scene.dim(); ++e)
        logit += double{scene.Query(0, h, 0, e)} * double{scene.memory().Get(0, 0, t, 0, e)};
      best = std::max(best, logit);
    }
    highest[t] = best;
  }
  const auto expected = Kept(highest, kTokens, options);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), chosen.begin()));
}

}  // namespace
}  // namespace kvt::test
