// Token importance against its definition, computed slowly in double.
#include "select/importance.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "unit/select/select_fixture.h"

namespace kvt::test {
namespace {

using ::testing::Each;

std::vector<double> Weights(Scene* scene, const kvt_importance_options_t& options) {
  const auto importance = Importance::Check(options);
  EXPECT_TRUE(importance.ok()) << importance.status();
  const View view = scene->memory().view();
  const auto attention = Attention::Check(view, &scene->attention(), UINT32_MAX);
  EXPECT_TRUE(attention.ok()) << attention.status();
  return importance->Weights(*scene->model(), view, *attention);
}

std::vector<int8_t> Exponents(Scene* scene, const kvt_importance_options_t& options) {
  const View view = scene->memory().view();
  const auto attention = Attention::Check(view, &scene->attention(), UINT32_MAX);
  EXPECT_TRUE(attention.ok()) << attention.status();
  return Importance::Check(options)->Exponents(*scene->model(), view, *attention);
}

// Straight from the definition in select.h.
std::vector<double> WeightsReference(Scene* scene, uint64_t tokens, const std::vector<uint32_t>& row_tokens,
                                     const kvt_importance_options_t& options) {
  std::vector<double> weights(tokens);
  const Model& model = *scene->model();
  const double gap = row_tokens.size() == 1 ? 1
                                            : (row_tokens.back() - row_tokens.front()) /
                                                  static_cast<double>(row_tokens.size() - 1);
  const double shrinkage = double{options.shrinkage} / gap;
  for (uint32_t layer = 0; layer < model.layers(); ++layer) {
    for (uint32_t head = 0; head < model.kv_heads(); ++head) {
      std::vector<double> mass(tokens), count(tokens), rates(tokens);
      double all_mass = 0, all_count = 0, sum = 0;
      for (uint32_t row = 0; row < row_tokens.size(); ++row) {
        for (uint32_t h = head * Scene::kGroup; h < (head + 1) * Scene::kGroup; ++h) {
          const std::vector<double> attention = scene->Reference(layer, h, row);
          for (uint64_t t = 0; t + options.distance <= row_tokens[row]; ++t) mass[t] += attention[t];
        }
        for (uint64_t t = 0; t + options.distance <= row_tokens[row]; ++t) ++count[t];
      }
      for (uint64_t t = 0; t < tokens; ++t) {
        all_mass += mass[t];
        all_count += count[t];
      }
      for (uint64_t t = 0; t < tokens; ++t) {
        rates[t] = (mass[t] + shrinkage * all_mass / all_count) / (count[t] + shrinkage);
        if (t >= options.sinks) sum += rates[t];
      }
      for (uint64_t t = 0; t < tokens; ++t) {
        weights[t] += (rates[t] * static_cast<double>(tokens - options.sinks) / sum + double{options.floor}) /
                      (model.layers() * model.kv_heads());
      }
    }
  }
  return weights;
}

class ImportanceTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ImportanceTest, IsAsDefined) {
  constexpr uint64_t kTokens = 150;
  kvt_importance_options_t options = DefaultImportanceOptions();
  options.distance = 24;
  for (const Layout layout : {Layout::kDense, Layout::kStrided}) {
    Scene scene(kTokens, 0, layout, KVT_ELEMENT_F32, GetParam());
    const auto expected = WeightsReference(&scene, kTokens, scene.row_tokens(), options);
    for (const bool rows : {false, true}) {
      if (rows) scene.GiveRows();
      const auto weights = Weights(&scene, options);
      const auto exponents = Exponents(&scene, options);
      ASSERT_EQ(weights.size(), kTokens);
      for (uint64_t t = 0; t < kTokens; ++t) {
        EXPECT_NEAR(weights[t], expected[t], 1e-5 * expected[t]) << t;
        const double exact = std::clamp(-2 * (std::log2(expected[t]) + 0.457), -8.0, 2.0);
        EXPECT_NEAR(exponents[t], exact, 0.5001) << t;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sampled, ImportanceTest, testing::Values(1, 4, 7));

TEST(ImportanceTest, WhatLaterQueriesReadIsImportant) {
  constexpr uint64_t kTokens = 400;
  Scene scene(kTokens, 0, Layout::kDense, KVT_ELEMENT_F32, 4);
  // Queries of the last hundred tokens look for token 50, and those right behind it look for token 60.
  for (uint32_t row = 0; row < scene.row_tokens().size(); ++row) {
    const uint32_t at = scene.row_tokens()[row];
    const uint32_t wanted = at >= 300 ? 50 : at > 60 && at < 100 ? 60 : 0;
    if (wanted == 0) continue;
    for (uint32_t layer = 0; layer < scene.model()->layers(); ++layer)
      for (uint32_t head = 0; head < scene.heads(); ++head)
        for (uint32_t e = 0; e < scene.dim(); ++e)
          scene.Query(layer, head, row, e) =
              3 * scene.memory().Get(layer, 0, wanted, head / Scene::kGroup, e);
  }
  const auto exponents = Exponents(&scene, DefaultImportanceOptions());
  EXPECT_EQ(exponents[50], KVT_IMPORTANCE_MIN);
  EXPECT_GT(exponents[60], -4);
  // Where no query is far enough there is nothing to say: near the mean.
  for (uint64_t t = kTokens - 64; t < kTokens; ++t) EXPECT_EQ(exponents[t], exponents[kTokens - 1]);
}

TEST(ImportanceTest, SamplingChangesLittle) {
  constexpr uint64_t kTokens = 500;
  Scene all(kTokens, 0, Layout::kDense, KVT_ELEMENT_F32, 1);
  Scene sampled(kTokens, 0, Layout::kDense, KVT_ELEMENT_F32, 4);
  const auto exact = Weights(&all, DefaultImportanceOptions());
  const auto near = Weights(&sampled, DefaultImportanceOptions());
  double difference = 0;
  for (uint64_t t = 4; t < kTokens; ++t) difference += std::fabs(std::log2(near[t] / exact[t])) / kTokens;
  EXPECT_LT(difference, 0.25);
}

TEST(ImportanceTest, ShortSequencesAreAllEqual) {
  for (const uint64_t tokens : {1, 5, 64}) {
    Scene scene(tokens, 0, Layout::kDense, KVT_ELEMENT_F32, 1);
    EXPECT_THAT(Exponents(&scene, DefaultImportanceOptions()), Each(0)) << tokens;
  }
}

TEST(ImportanceTest, NonfiniteInputStillCounts) {
  const float nan = std::nanf(""), infinity = INFINITY;
  Scene scene(120, 0, Layout::kDense, KVT_ELEMENT_F32, 1);
  scene.memory().Set(0, 0, 10, 0, 3, nan);
  scene.memory().Set(0, 0, 11, 1, 3, infinity);
  scene.memory().Set(1, 0, 12, 1, 3, -infinity);
  scene.Query(0, 1, 100, 4) = nan;
  scene.Query(1, 2, 110, 4) = infinity;
  for (const double weight : Weights(&scene, DefaultImportanceOptions())) {
    EXPECT_TRUE(std::isfinite(weight));
    EXPECT_GT(weight, 0);
  }
  scene.GiveRows();
  auto* rows = const_cast<float*>(scene.attention().base);
  for (uint32_t t = 0; t < 120; ++t) rows[100 * 120 + t] = t % 2 == 0 ? nan : infinity;
  for (const double weight : Weights(&scene, DefaultImportanceOptions())) EXPECT_TRUE(std::isfinite(weight));
}

}  // namespace
}  // namespace kvt::test
