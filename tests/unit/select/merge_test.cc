// CaM's merges: who is merged, into whom, and what it does to the rows and to the output of attention.
#include "select/merge.h"

#include <gmock/gmock.h>

#include <cmath>

#include "unit/select/select_fixture.h"

namespace kvt::test {
namespace {

constexpr uint64_t kTokens = 60;

class MergeTest : public testing::Test {
 protected:
  MergeTest() { options_.scope = KVT_SELECT_SEQUENCE; }

  std::vector<kvt_merge_t> Plan(const std::vector<uint32_t>& tokens) {
    const auto merger = Merger::Check(options_);
    EXPECT_TRUE(merger.ok()) << merger.status();
    const View view = scene_.memory().view();
    const auto attention = Attention::Check(view, &scene_.attention(), UINT32_MAX);
    EXPECT_TRUE(attention.ok()) << attention.status();
    const auto merges = merger->Plan(*scene_.model(), view, *attention, tokens);
    EXPECT_TRUE(merges.ok()) << merges.status();
    return merges.ok() ? *merges : std::vector<kvt_merge_t>();
  }
  Status Apply(const std::vector<uint32_t>& tokens, const std::vector<kvt_merge_t>& merges) {
    return ApplyMerges(*scene_.model(), scene_.memory().view(), tokens, merges);
  }
  // All heads see all tokens alike.
  void LookNowhere() {
    for (uint32_t layer = 0; layer < scene_.model()->layers(); ++layer)
      for (uint32_t head = 0; head < scene_.heads(); ++head)
        for (uint32_t e = 0; e < scene_.dim(); ++e) scene_.Query(layer, head, 0, e) = 0;
  }
  // Each query head's logit of a token is raised by so much.
  void Raise(uint32_t layer, uint32_t kv_head, uint32_t token, float logit) {
    for (uint32_t e = 0; e < scene_.dim(); ++e)
      scene_.memory().Set(layer, 0, token, kv_head, e, e == 0 ? logit * std::sqrt(24.0f) : 0);
    for (uint32_t head = kv_head * Scene::kGroup; head < (kv_head + 1) * Scene::kGroup; ++head)
      scene_.Query(layer, head, 0, 0) = 1;
  }
  std::vector<uint32_t> AllBut(const std::vector<uint32_t>& dropped) {
    std::vector<uint32_t> kept;
    for (uint32_t t = 0; t < kTokens; ++t) {
      if (std::find(dropped.begin(), dropped.end(), t) == dropped.end()) kept.push_back(t);
    }
    return kept;
  }

  Scene scene_{kTokens, 1};
  kvt_merge_options_t options_ = DefaultMergeOptions();
};

TEST_F(MergeTest, AsMuchAsTheWindowIsCertain) {
  for (uint32_t layer = 0; layer < 2; ++layer)
    for (uint32_t head = 0; head < 2; ++head)
      for (uint32_t t = 0; t < kTokens; ++t) Raise(layer, head, t, t == 20 ? 1 : t == 30 ? -30 : 0);
  options_.span = 4;
  const std::vector<uint32_t> kept = AllBut({20, 22, 30, 58, 59});
  for (options_.seed = 0; options_.seed < 20; ++options_.seed) {
    int merged = 0;
    for (const kvt_merge_t& merge : Plan(kept)) {
      EXPECT_NE(merge.from, 30u) << "nobody looks at it";
      EXPECT_LT(merge.from, 58u) << "no kept token is behind it";
      EXPECT_EQ(merge.count, 4u);
      EXPECT_EQ(merge.weight, 0.25f);
      if (merge.from != 20) continue;
      ++merged;
      EXPECT_EQ(kept[merge.to], 21u);
      EXPECT_EQ(kept[merge.to + 1], 23u);
    }
    EXPECT_EQ(merged, 4) << "each layer and head";
  }
}

TEST_F(MergeTest, OthersAreDrawn) {
  // Tokens 10 to 19 get a third of what the window's tokens get.
  for (uint32_t layer = 0; layer < 2; ++layer)
    for (uint32_t head = 0; head < 2; ++head)
      for (uint32_t t = 0; t < kTokens; ++t) Raise(layer, head, t, t >= 10 && t < 20 ? -std::log(3.0f) : 0);
  const std::vector<uint32_t> kept = AllBut({10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  size_t merged = 0;
  for (options_.seed = 0; options_.seed < 200; ++options_.seed) {
    const auto merges = Plan(kept), again = Plan(kept);
    ASSERT_EQ(merges.size(), again.size());
    for (size_t i = 0; i < merges.size(); ++i)
      EXPECT_EQ(std::memcmp(&merges[i], &again[i], sizeof merges[i]), 0);
    merged += merges.size();
  }
  EXPECT_NEAR(static_cast<double>(merged) / (200 * 4 * 10), 1 / 3.0, 0.03);
}

TEST_F(MergeTest, HeadsOfAGroupAreAveraged) {
  LookNowhere();
  // One head of the group looks at token 5 alone, the other at nothing: half of all attention on average.
  Raise(0, 1, 5, 30);
  for (uint32_t e = 0; e < scene_.dim(); ++e) scene_.Query(0, 2, 0, e) = 0;
  options_.seed = 3;
  int merged = 0;
  for (const kvt_merge_t& merge : Plan(AllBut({5}))) merged += merge.layer == 0 && merge.head == 1;
  EXPECT_EQ(merged, 1);
}

TEST_F(MergeTest, MergingSavesWhatDroppingLoses) {
  LookNowhere();
  for (uint32_t e = 0; e < 16; ++e) scene_.memory().Set(1, 1, 25, 1, e, 12);
  const auto full = scene_.FullOutputs(1, 1);
  const std::vector<uint32_t> kept = AllBut({25});
  const double dropped = scene_.OutputError(1, 1, kept, full);
  ASSERT_TRUE(Apply(kept, Plan(kept)).ok());
  EXPECT_LT(scene_.OutputError(1, 1, kept, full), 0.05 * dropped);
}

TEST_F(MergeTest, ApplyAddsOnce) {
  const std::vector<uint32_t> tokens = {3, 7, 8};
  const auto at = [&](uint32_t token) { return scene_.memory().Get(1, 1, token, 0, 5); };
  const float v3 = at(3), v4 = at(4), v7 = at(7), v8 = at(8), k7 = scene_.memory().Get(1, 0, 7, 0, 5);
  // Token 7 is both read and written: it is read as it was.
  const std::vector<kvt_merge_t> merges = {
      {.layer = 1, .head = 0, .from = 4, .to = 0, .count = 3, .weight = 0.5f},
      {.layer = 1, .head = 0, .from = 7, .to = 2, .count = 1, .weight = 2}};
  ASSERT_TRUE(Apply(tokens, merges).ok());
  EXPECT_FLOAT_EQ(at(3), v3 + 0.5f * v4);
  EXPECT_FLOAT_EQ(at(7), v7 + 0.5f * v4);
  EXPECT_FLOAT_EQ(at(8), v8 + 0.5f * v4 + 2 * v7);
  EXPECT_EQ(at(4), v4);
  EXPECT_EQ(scene_.memory().Get(1, 0, 7, 0, 5), k7);
}

TEST_F(MergeTest, SumsStayFinite) {
  Memory half(scene_.model(), Layout::kPaged, KVT_ELEMENT_F16, 4);
  half.Fill(1);
  half.Set(0, 1, 0, 0, 0, 60000);
  half.Set(0, 1, 1, 0, 0, 60000);
  half.Set(0, 1, 0, 0, 1, INFINITY);
  const float before = half.Get(0, 1, 1, 0, 1);
  const std::vector<uint32_t> tokens = {1, 2, 3};
  const kvt_merge_t merge = {.layer = 0, .head = 0, .from = 0, .to = 0, .count = 1, .weight = 1};
  ASSERT_TRUE(ApplyMerges(*scene_.model(), half.view(), tokens, {&merge, 1}).ok());
  EXPECT_EQ(half.Get(0, 1, 1, 0, 0), 65504);
  EXPECT_EQ(half.Get(0, 1, 1, 0, 1), before);
}

TEST_F(MergeTest, RefusesByName) {
  const std::vector<uint32_t> tokens = {3, 7, 8};
  const kvt_merge_t good = {.layer = 1, .head = 0, .from = 4, .to = 0, .count = 3, .weight = 0.5f};
  const auto refuse = [&](auto change, kvt_status_t code, const char* text) {
    kvt_merge_t merge = good;
    change(&merge);
    const float before = scene_.memory().Get(1, 1, 3, 0, 0);
    const Status status = Apply(tokens, {good, merge});
    EXPECT_EQ(CodeOf(status), code);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(text));
    EXPECT_EQ(scene_.memory().Get(1, 1, 3, 0, 0), before);
  };
  refuse([](auto* m) { m->layer = 2; }, KVT_ERR_OUT_OF_RANGE, "merges[1].layer is 2");
  refuse([](auto* m) { m->head = 2; }, KVT_ERR_OUT_OF_RANGE, "merges[1].head is 2");
  refuse([](auto* m) { m->from = 60; }, KVT_ERR_OUT_OF_RANGE, "merges[1].from is 60");
  refuse([](auto* m) { m->to = 1; }, KVT_ERR_OUT_OF_RANGE, "merges[1].count is 3");
  refuse([](auto* m) { m->to = 4; }, KVT_ERR_OUT_OF_RANGE, "merges[1].count is 3");
  refuse([](auto* m) { m->weight = NAN; }, KVT_ERR_INVALID_ARGUMENT, "merges[1].weight is nan");
  EXPECT_EQ(CodeOf(Apply({60}, {})), KVT_ERR_OUT_OF_RANGE);
}

}  // namespace
}  // namespace kvt::test
