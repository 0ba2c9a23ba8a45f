#include "codec/transform/dense_walk.h"

#include "cpu/scalar.h"
#include "cpu/trellis.h"

namespace kvt {
namespace {

constexpr float kUnreached = 1e30f;

}  // namespace

void DenseWalk::FillTables(int32_t class_of_component, std::span<const Token> tokens) {
  for (size_t t = 0; t < tokens.size(); ++t)
    tables_[t] = static_cast<uint16_t>(TableOf(class_of_component, tokens[t].importance));
}

void DenseWalk::Run(const DenseTables& tables, Quantiser quantiser, int32_t step,
                    const std::vector<int32_t>& classes, const float* values, std::span<const Token> tokens) {
  factors_.resize(kTokens);
  tables_.resize(kTokens);
  used_.resize(classes.size() * kTokens);
  codes_.resize(classes.size() * kTokens);
  for (size_t t = 0; t < tokens.size(); ++t) factors_[t] = 1 / StepOf(TokenStep(step, tokens[t]));
  if (quantiser == Quantiser::kTrellis) {
    RunTrellis(tables, classes, values, tokens);
  } else {
    RunScalar(tables, classes, values, tokens);
  }
}

void DenseWalk::RunScalar(const DenseTables& tables, const std::vector<int32_t>& classes, const float* values,
                          std::span<const Token> tokens) {
  const kernels::TrellisContext context = tables.context();
  for (size_t j = 0; j < classes.size(); ++j) {
    if (j == 0 || classes[j] != classes[j - 1]) FillTables(classes[j], tokens);
    kernels::ScalarCodes(context, values + j * kTokens, factors_.data(), tables_.data(), tokens.size(),
                         codes_.data() + j * kTokens);
    std::copy_n(tables_.begin(), tokens.size(), used_.begin() + static_cast<ptrdiff_t>(j * kTokens));
  }
}

void DenseWalk::RunTrellis(const DenseTables& tables, const std::vector<int32_t>& classes,
                           const float* values, std::span<const Token> tokens) {
  const size_t count = tokens.size(), components = classes.size();
  states_.resize(kTokens);
  arrivals_.resize(components * kTokens);
  costs_.assign(kernels::kTrellisStates * kTokens, kUnreached);
  std::fill_n(costs_.begin(), kTokens, 0.0f);
  const kernels::TrellisContext context = tables.context();
  for (size_t j = 0; j < components; ++j) {
    if (j == 0 || classes[j] != classes[j - 1]) FillTables(classes[j], tokens);
    kernels::TrellisStep(context, values + j * kTokens, factors_.data(), tables_.data(), count, kTokens,
                         costs_.data(), arrivals_.data() + j * kTokens);
    // Far from overflow, and unreached states stay the worst.
    if (j % 4096 != 4095) continue;
    for (size_t t = 0; t < count; ++t) {
      float least = costs_[t];
      for (size_t s = 1; s < kernels::kTrellisStates; ++s) least = std::min(least, costs_[s * kTokens + t]);
      for (size_t s = 0; s < kernels::kTrellisStates; ++s) costs_[s * kTokens + t] -= least;
    }
  }
  for (size_t t = 0; t < count; ++t) {
    uint8_t best = 0;
    for (uint8_t s = 1; s < kernels::kTrellisStates; ++s)
      if (costs_[s * kTokens + t] < costs_[best * kTokens + t]) best = s;
    states_[t] = best;
  }
  for (size_t j = components; j-- > 0;) {
    if (j + 1 == components || classes[j] != classes[j + 1]) FillTables(classes[j], tokens);
    kernels::TrellisBack(context, values + j * kTokens, factors_.data(), tables_.data(),
                         arrivals_.data() + j * kTokens, count, states_.data(), codes_.data() + j * kTokens);
    for (size_t t = 0; t < count; ++t)
      used_[j * kTokens + t] = static_cast<uint8_t>(tables_[t] + (states_[t] & 1));
  }
}

}  // namespace kvt
