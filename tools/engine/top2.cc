#include "engine/top2.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvt::engine {

Choice Top2(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Choice choice;
  float best = -kInfinity;
  float second = -kInfinity;
  int32_t numbers = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float value = logits[i];
    if (std::isnan(value)) continue;
    ++numbers;
    if (choice.token < 0 || value > best) {
      second = best;
      best = value;
      choice.token = static_cast<int32_t>(i);
    } else if (value > second) {
      second = value;
    }
  }
  if (numbers == 1) {
    choice.gap = kInfinity;
  } else if (numbers > 1) {
    choice.gap = best == second ? 0 : best - second;
  }
  return choice;
}

float MaxAbsDiff(std::span<const float> a, std::span<const float> b) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (a.size() != b.size()) return kInfinity;
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const float difference = std::fabs(a[i] - b[i]);
    if (std::isnan(difference)) return kInfinity;
    most = std::max(most, difference);
  }
  return most;
}

}  // namespace kvt::engine
