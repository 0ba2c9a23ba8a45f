// ThinKV's parts: sparsity, thresholds, the schedule, and the tokens that stand for others.
#include "select/thought.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "select/cluster.h"
#include "unit/select/select_fixture.h"

namespace kvt::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

kvt_thought_t Thought(uint32_t kind, uint32_t length = 128) {
  kvt_thought_t thought = {};
  thought.kind = kind;
  thought.length = thought.held = length;
  return thought;
}

class StepTest : public testing::Test {
 protected:
  // A thought ends, and the host drops what does not stay.
  void End(uint32_t kind) {
    thoughts_.push_back(Thought(kind));
    const Status status = Thinner::Check(options_)->Step(absl::MakeSpan(thoughts_));
    EXPECT_TRUE(status.ok()) << status;
    for (kvt_thought_t& thought : thoughts_) thought.held = thought.keep;
  }
  std::vector<uint32_t> Held() const {
    std::vector<uint32_t> held;
    for (const kvt_thought_t& thought : thoughts_) held.push_back(thought.held);
    return held;
  }

  kvt_thought_options_t options_ = DefaultThoughtOptions();
  std::vector<kvt_thought_t> thoughts_;
};

TEST_F(StepTest, ATransitionThinsAllBeforeIt) {
  End(KVT_THOUGHT_REASONING);
  End(KVT_THOUGHT_EXECUTION);
  EXPECT_THAT(Held(), ElementsAre(128, 128));
  End(KVT_THOUGHT_TRANSITION);
  EXPECT_THAT(Held(), ElementsAre(64, 64, 128));
  End(KVT_THOUGHT_REASONING);
  EXPECT_THAT(Held(), ElementsAre(64, 64, 128, 128));
  End(KVT_THOUGHT_TRANSITION);
  EXPECT_THAT(Held(), ElementsAre(32, 32, 64, 64, 128));
  for (int i = 0; i < 9; ++i) End(KVT_THOUGHT_TRANSITION);
  EXPECT_EQ(Held()[0], 4u);
  EXPECT_EQ(thoughts_[0].level, 5u);
  EXPECT_EQ(thoughts_[0].bits, 4u);
  EXPECT_EQ(thoughts_[1].bits, 4u);
  EXPECT_EQ(thoughts_[2].bits, 2u);
}

TEST_F(StepTest, TheBudgetThinsTheLeastAndEarliestFirst) {
  options_.budget = 512;
  End(KVT_THOUGHT_REASONING);
  End(KVT_THOUGHT_EXECUTION);
  End(KVT_THOUGHT_EXECUTION);
  End(KVT_THOUGHT_REASONING);
  End(KVT_THOUGHT_REASONING);
  EXPECT_THAT(Held(), ElementsAre(128, 4, 64, 128, 128));
}

TEST_F(StepTest, ThinningEndsAtTheLastLevel) {
  options_.budget = 1;
  End(KVT_THOUGHT_REASONING);
  EXPECT_THAT(Held(), ElementsAre(128)) << "what has just ended stays";
  End(KVT_THOUGHT_REASONING);
  EXPECT_THAT(Held(), ElementsAre(4, 128));
}

TEST_F(StepTest, RefusesByName) {
  const auto refuse = [&](auto change, const char* text) {
    std::vector<kvt_thought_t> thoughts = {Thought(1), Thought(2)};
    change(&thoughts[1]);
    const Status status = Thinner::Check(options_)->Step(absl::MakeSpan(thoughts));
    EXPECT_EQ(CodeOf(status), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_EQ(thoughts[0].keep, 0u);
  };
  refuse([](auto* t) { t->kind = 0; }, "thoughts[1].kind is 0");
  refuse([](auto* t) { t->kind = 4; }, "thoughts[1].kind is 4");
  refuse([](auto* t) { t->length = 0; }, "thoughts[1].length is 0");
  refuse([](auto* t) { t->held = 129; }, "thoughts[1].held is 129");
  refuse([](auto* t) { t->held = 0; }, "thoughts[1].held is 0");
  refuse([](auto* t) { t->level = 6; }, "thoughts[1].level is 6");
  EXPECT_TRUE(Thinner::Check(options_)->Step({}).ok());
}

TEST(ThresholdsTest, PartThreeKinds) {
  std::mt19937 random(2);
  std::normal_distribution<float> spread(0, 0.025f);
  std::vector<float> sparsities;
  for (int i = 0; i < 300; ++i)
    sparsities.push_back(std::clamp(0.25f * (1 + i % 3) + spread(random), 0.0f, 1.0f));
  const auto thresholds = ThoughtThresholds(sparsities);
  ASSERT_TRUE(thresholds.ok()) << thresholds.status();
  EXPECT_NEAR(thresholds->first, 0.375, 0.06);
  EXPECT_NEAR(thresholds->second, 0.625, 0.06);
  for (float& value : sparsities) value = std::min(value, 0.5f);
  EXPECT_EQ(CodeOf(ThoughtThresholds(sparsities).status()), KVT_ERR_NOT_FOUND);
  sparsities.assign(40, 0.5f);
  EXPECT_EQ(CodeOf(ThoughtThresholds(sparsities).status()), KVT_ERR_NOT_FOUND);
  sparsities[7] = std::nanf("");
  EXPECT_THAT(std::string(ThoughtThresholds(sparsities).status().message()),
              HasSubstr("sparsities[7] is nan"));
  sparsities.resize(15);
  EXPECT_THAT(std::string(ThoughtThresholds(sparsities).status().message()), HasSubstr("count is 15"));
}

TEST(SparsityTest, IsAsDefined) {
  constexpr uint64_t kTokens = 70;
  Scene scene(kTokens, 0, Layout::kDense, KVT_ELEMENT_F32, 5);
  for (uint32_t layer = 0; layer < 2; ++layer)
    for (uint32_t head = 0; head < scene.heads(); ++head)
      for (uint32_t row = 0; row < scene.row_tokens().size(); ++row)
        for (uint32_t e = 0; e < scene.dim(); ++e) scene.Query(layer, head, row, e) *= 3;
  kvt_thought_options_t options = DefaultThoughtOptions();
  options.least = 0.02f;
  std::vector<double> expected(2);
  for (uint32_t layer = 0; layer < 2; ++layer) {
    for (uint32_t head = 0; head < scene.heads(); ++head) {
      for (uint32_t row = 0; row < scene.row_tokens().size(); ++row) {
        const auto weights = scene.Reference(layer, head, row);
        const double most = *std::max_element(weights.begin(), weights.end());
        double few = 0;
        for (uint32_t t = 0; t <= scene.row_tokens()[row]; ++t)
          few += weights[t] < double{options.least} * most;
        expected[layer] += few / (scene.row_tokens()[row] + 1) / scene.heads() /
                           static_cast<double>(scene.row_tokens().size());
      }
    }
  }
  for (const bool rows : {false, true}) {
    if (rows) scene.GiveRows();
    const View view = scene.memory().view();
    const auto attention = Attention::Check(view, &scene.attention(), UINT32_MAX);
    ASSERT_TRUE(attention.ok());
    const auto measured = Thinner::Check(options)->Sparsities(*scene.model(), view, *attention);
    ASSERT_EQ(measured.size(), 2u);
    for (uint32_t layer = 0; layer < 2; ++layer) EXPECT_NEAR(measured[layer], expected[layer], 1e-3);
  }
}

TEST(RepresentativesTest, OneOfEachGroup) {
  constexpr size_t kGroups = 6, kEach = 9, kWidth = 11;
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0, 1);
  Rows rows;
  rows.width = kWidth;
  std::vector<float> middles(kGroups * kWidth);
  for (float& value : middles) value = 20 * normal(random);
  for (size_t i = 0; i < kGroups * kEach; ++i)
    for (size_t c = 0; c < kWidth; ++c)
      rows.values.push_back(middles[i % kGroups * kWidth + c] + normal(random));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto chosen = Representatives(rows, kGroups, seed);
    EXPECT_EQ(chosen, Representatives(rows, kGroups, seed));
    std::set<size_t> groups;
    for (const uint32_t row : chosen) groups.insert(row % kGroups);
    EXPECT_EQ(groups.size(), kGroups) << seed;
  }
}

TEST(RepresentativesTest, AnyRowsGiveDistinctOnes) {
  Rows rows;
  rows.width = 3;
  rows.values.assign(30 * 3, 1);
  for (size_t i = 0; i < 9; ++i) rows.values[i] = i < 3 ? 3e38f : -3e38f;
  for (size_t count = 1; count <= 30; ++count) {
    const auto chosen = Representatives(rows, count, 1);
    ASSERT_EQ(chosen.size(), count);
    EXPECT_TRUE(std::adjacent_find(chosen.begin(), chosen.end(), std::greater_equal<>()) == chosen.end());
    EXPECT_LT(chosen.back(), 30u);
  }
}

TEST(ThinnerTest, ChoosesOfEachThought) {
  constexpr uint64_t kTokens = 100;
  Scene scene(kTokens, 1);
  std::vector<kvt_thought_t> thoughts = {Thought(1, 40), Thought(2, 30)};
  thoughts[0].keep = 12;
  thoughts[1].keep = 30;
  for (const uint32_t scope : {KVT_SELECT_EACH_HEAD, KVT_SELECT_SEQUENCE}) {
    kvt_thought_options_t options = DefaultThoughtOptions();
    options.scope = scope;
    options.prefix = 10;
    options.seed = 4;
    const auto thinner = Thinner::Check(options);
    const View view = scene.memory().view();
    const auto entries = thinner->Entries(view, thoughts);
    ASSERT_TRUE(entries.ok()) << entries.status();
    const size_t choices = scope == KVT_SELECT_SEQUENCE ? 1 : 4;
    ASSERT_EQ(*entries, choices * (kTokens - 28));
    const auto chosen = thinner->Choose(*scene.model(), view, thoughts);
    ASSERT_EQ(chosen.size(), *entries);
    EXPECT_EQ(chosen, thinner->Choose(*scene.model(), view, thoughts));
    for (size_t choice = 0; choice < choices; ++choice) {
      const auto begin = chosen.begin() + static_cast<ptrdiff_t>(choice * (kTokens - 28));
      const std::set<uint32_t> kept(begin, begin + kTokens - 28);
      EXPECT_EQ(kept.size(), kTokens - 28);
      for (uint32_t t = 0; t < kTokens; ++t) {
        EXPECT_TRUE(kept.count(t) != 0 || (t >= 10 && t < 50)) << t;
      }
    }
    thoughts[0].held = 61;
    thoughts[0].length = 61;
    EXPECT_EQ(CodeOf(thinner->Entries(view, thoughts).status()), KVT_ERR_OUT_OF_RANGE);
    thoughts[0].keep = 62;
    EXPECT_EQ(CodeOf(thinner->Entries(view, thoughts).status()), KVT_ERR_INVALID_ARGUMENT);
    thoughts[0] = Thought(1, 40);
    thoughts[0].keep = 12;
  }
}

}  // namespace
}  // namespace kvt::test
