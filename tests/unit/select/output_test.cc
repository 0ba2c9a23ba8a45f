// What attention reads from the tokens that a choice keeps, against what it reads from all: choices for each
// layer and KV head must lose less than those that know nothing of the queries.
#include <algorithm>

#include "unit/select/select_fixture.h"

namespace kvt::test {
namespace {

constexpr uint64_t kTokens = 160;
constexpr uint32_t kRows = 6, kBudget = 40;

// Each query head looks for a few tokens of its own, the same ones in all its queries.
void Look(Scene* scene) {
  std::mt19937 random(11);
  for (uint32_t layer = 0; layer < scene->model()->layers(); ++layer) {
    for (uint32_t head = 0; head < scene->heads(); ++head) {
      for (int wanted = 0; wanted < 3; ++wanted) {
        const uint32_t token = 10 + random() % 120;
        for (uint32_t row = 0; row < kRows; ++row)
          for (uint32_t e = 0; e < scene->dim(); ++e)
            scene->Query(layer, head, row, e) +=
                2 * scene->memory().Get(layer, 0, token, head / Scene::kGroup, e);
      }
    }
  }
}

// The error of a policy's choices, summed over layers and KV heads.
double ErrorOf(Scene* scene, uint32_t policy, uint32_t scope) {
  kvt_select_options_t options = DefaultSelectOptions();
  options.policy = policy;
  options.scope = scope;
  options.budget = kBudget;
  options.window = 8;
  options.relevance = 0.9f;
  const std::vector<uint32_t> chosen = scene->Choose(options);
  double error = 0;
  size_t choice = 0;
  for (uint32_t layer = 0; layer < scene->model()->layers(); ++layer) {
    for (uint32_t head = 0; head < scene->model()->kv_heads(); ++head, ++choice) {
      const auto begin =
          chosen.begin() + static_cast<ptrdiff_t>(scope == KVT_SELECT_SEQUENCE ? 0 : choice * kBudget);
      error += scene->OutputError(layer, head, std::vector<uint32_t>(begin, begin + kBudget),
                                  scene->FullOutputs(layer, head));
    }
  }
  return error;
}

TEST(OutputTest, ChoicesByAttentionLoseLittle) {
  Scene scene(kTokens, kRows);
  Look(&scene);
  const double recent = ErrorOf(&scene, KVT_SELECT_RECENT, KVT_SELECT_EACH_HEAD);
  const double snapkv = ErrorOf(&scene, KVT_SELECT_SNAPKV, KVT_SELECT_EACH_HEAD);
  const double rkv = ErrorOf(&scene, KVT_SELECT_RKV, KVT_SELECT_EACH_HEAD);
  EXPECT_LT(snapkv, 0.05 * recent);
  EXPECT_LT(rkv, 0.05 * recent);
  // One choice for all heads keeps what some of them do not need.
  const double sequence = ErrorOf(&scene, KVT_SELECT_SNAPKV, KVT_SELECT_SEQUENCE);
  EXPECT_LT(snapkv, sequence);
  EXPECT_LT(sequence, recent);
}

TEST(OutputTest, AllTokensLoseNothing) {
  Scene scene(kTokens, kRows);
  std::vector<uint32_t> all(kTokens);
  for (uint32_t t = 0; t < kTokens; ++t) all[t] = t;
  EXPECT_EQ(scene.OutputError(1, 1, all, scene.FullOutputs(1, 1)), 0);
}

}  // namespace
}  // namespace kvt::test
