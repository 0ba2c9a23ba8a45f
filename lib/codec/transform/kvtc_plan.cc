#include "codec/transform/kvtc_plan.h"

#include <algorithm>
#include <cmath>

#include "codec/transform/kvtc_block.h"

namespace kvt {
namespace {

// Blocks begin at multiples of it, so blocks of one component come in so many.
constexpr uint32_t kUnit = 16;
constexpr size_t kTokens = 16;

// A choice for some units of components. The costs of all choices are multiples of kKvtcBlockBits.
struct Choice {
  uint32_t size;  // of a block
  KvtcType type;
  uint32_t units, cost;  // of the choice, the cost in kKvtcBlockBits
};

std::vector<Choice> AllChoices() {
  std::vector<Choice> choices = {{kUnit, KvtcType::kNone, 1, 0}};
  for (const uint32_t size : kKvtcSizes) {
    for (const KvtcType type : {KvtcType::kInt2, KvtcType::kInt4, KvtcType::kFp8}) {
      const uint32_t blocks = size < kUnit ? kUnit / size : 1;
      // What one component costs in any type is what it costs in 16 bits: the shift.
      const uint32_t bits = size == 1 ? KvtcBits(KvtcType::kInt2) : size * KvtcBits(type);
      if (size == 1 && type != KvtcType::kInt2) continue;
      choices.push_back(
          {size, type, std::max(size / kUnit, 1u), blocks * (kKvtcBlockBits + bits) / kKvtcBlockBits});
    }
  }
  return choices;
}

// Normal components of some tokens, the same at each call.
std::vector<float> Simulate(const std::vector<float>& deviations) {
  std::vector<float> values(kTokens * deviations.size());
  uint64_t state = 0x9e3779b97f4a7c15;
  const auto uniform = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (static_cast<double>(state >> 11) + 0.5) * 0x1p-53;
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform());
    values[i] = static_cast<float>(normal) * deviations[i % deviations.size()];
  }
  return values;
}

double ErrorOf(const std::vector<float>& values, size_t width, size_t first, size_t end, KvtcType type) {
  double error = 0;
  for (size_t t = 0; t < kTokens; ++t) {
    const float* begin = values.data() + t * width + first;
    const float* stop = values.data() + t * width + end;
    const auto [low, high] = std::minmax_element(begin, stop);
    const KvtcQuantizer quantizer(type, KvtcScaleOf(type, *low, *high));
    for (const float* value = begin; value != stop; ++value) {
      const float left = type == KvtcType::kNone ? *value : *value - quantizer.Value(quantizer.Code(*value));
      error += double{left} * double{left};
    }
  }
  return error;
}

// Adds the blocks of a choice that begins at component `first` of `width`.
void AddBlocks(const Choice& choice, uint32_t first, uint32_t width, std::vector<KvtcBlock>* blocks) {
  const uint32_t end = std::min(first + choice.units * kUnit, width);
  for (uint32_t at = first; at < end; at += choice.size)
    blocks->push_back({at, std::min(choice.size, end - at), choice.type});
}

}  // namespace

std::vector<KvtcBlock> PlanKvtc(const std::vector<float>& deviations, uint64_t budget) {
  const auto width = static_cast<uint32_t>(deviations.size());
  const size_t units = (width + kUnit - 1) / kUnit, most = budget / kKvtcBlockBits;
  const std::vector<Choice> choices = AllChoices();
  const std::vector<float> values = Simulate(deviations);
  // Of what begins at a unit, with so much of the budget: the least error of all components from there on,
  // and the choice that has it.
  std::vector<double> least((units + 1) * (most + 1), 0.0);
  std::vector<uint8_t> taken(units * (most + 1), 0);
  for (size_t u = units; u-- > 0;) {
    double* own = least.data() + u * (most + 1);
    for (size_t c = 0; c < choices.size(); ++c) {
      const Choice& choice = choices[c];
      // A larger block than what is left is never better than one that fits.
      const size_t next = std::min(u + choice.units, units);
      if (c != 0 && u + choice.units / 4 >= units && choice.units > 1) continue;
      double error = 0;
      const size_t first = u * kUnit, end = std::min<size_t>(next * kUnit, width);
      for (size_t at = first; at < end; at += choice.size)
        error += ErrorOf(values, width, at, std::min<size_t>(at + choice.size, end), choice.type);
      const double* rest = least.data() + next * (most + 1);
      for (size_t b = choice.cost; b <= most; ++b) {
        const double sum = error + rest[b - choice.cost];
        if (c != 0 && sum >= own[b]) continue;
        own[b] = sum;
        taken[u * (most + 1) + b] = static_cast<uint8_t>(c);
      }
    }
  }
  std::vector<KvtcBlock> blocks;
  size_t left = most;
  for (size_t u = 0; u < units;) {
    const Choice& choice = choices[taken[u * (most + 1) + left]];
    AddBlocks(choice, static_cast<uint32_t>(u * kUnit), width, &blocks);
    left -= choice.cost;
    u += choice.units;
  }
  while (!blocks.empty() && blocks.back().type == KvtcType::kNone) blocks.pop_back();
  return blocks;
}

}  // namespace kvt
