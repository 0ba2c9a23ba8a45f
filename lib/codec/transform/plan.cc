#include "codec/transform/plan.h"

#include <algorithm>
#include <cmath>

#include "codec/transform/books.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

constexpr uint64_t kGainBits = 16;

// Variance that each further bit takes away, made non-increasing, so that bits are taken in order.
using Gains = std::array<double, kBookBitsMax + 1>;

Gains GainsOf(const Books& books) {
  Gains gains{};
  double least = 1;
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
    const double before = bits == 1 ? 1.0 : double{books[bits - 1].distortion};
    least = std::min(least, std::max(before - double{books[bits].distortion}, 0.0));
    gains[bits] = least;
  }
  return gains;
}

uint8_t BitsOf(float deviation, const Gains& gains, double gain) {
  const double variance = double{deviation} * double{deviation};
  uint8_t bits = 0;
  while (bits < kBookBitsMax && variance * gains[bits + 1u] > gain) ++bits;
  return bits;
}

uint64_t Total(const ProfileFacts& facts, const Gains& gains, double gain) {
  uint64_t total = 0;
  for (const ProfileGroup& group : facts.groups) {
    for (const float deviation : group.deviation) {
      const uint8_t bits = BitsOf(deviation, gains, gain);
      if (bits == 0) break;
      total += bits;
    }
  }
  return total;
}

}  // namespace

BitPlan PlanBits(const ProfileFacts& facts, uint64_t budget) {
  const Gains gains = GainsOf(facts.books);
  // At `low` too many bits may be given, at `high` none is.
  double low = 0x1p-120, high = 0x1p+120;
  if (Total(facts, gains, low) <= budget) {
    high = low;
  } else {
    for (int i = 0; i < 80; ++i) {
      const double middle = std::sqrt(low * high);
      (Total(facts, gains, middle) > budget ? low : high) = middle;
    }
  }
  BitPlan plan;
  plan.gain = high;
  for (const ProfileGroup& group : facts.groups) {
    std::vector<uint8_t>& bits = plan.bits.emplace_back();
    for (const float deviation : group.deviation) {
      const uint8_t own = BitsOf(deviation, gains, high);
      if (own == 0) break;
      bits.push_back(own);
    }
  }
  return plan;
}

float EscapeLimit(double gain, float deviation, const ProfileBook& book) {
  // It pays where the squared error is above what so many bits would gain elsewhere. Where there is no wider
  // book, errors inside of the book are no reason.
  const std::vector<float>& levels = book.levels;
  const float outermost = std::max(levels[1] - levels[0], levels.back() - levels[levels.size() - 2]);
  return std::max(static_cast<float>(std::sqrt(kEscapeBits * gain)) / deviation, outermost);
}

uint64_t WholeBudget(const ProfileFacts& facts, uint32_t ratio) {
  uint64_t width = 0;
  for (const ProfileGroup& group : facts.groups) width += group.width();
  const uint64_t bits = 8 * width * ElementBytes(facts.element) / ratio;
  const uint64_t gains = kGainBits * facts.groups.size();
  return bits > gains ? bits - gains : 0;
}

uint64_t CodeBudget(const ProfileFacts& facts, uint32_t ratio) {
  size_t upper = 1;
  while (kMeasuredRatios[upper] < ratio) ++upper;
  const uint64_t low = kMeasuredRatios[upper - 1], high = kMeasuredRatios[upper];
  const uint64_t escapes =
      (facts.escapes[upper - 1] * (high - ratio) + facts.escapes[upper] * (ratio - low)) / (high - low);
  return WholeBudget(facts, ratio) * (kMillion - escapes) / kMillion;
}

std::shared_ptr<const Plan> Plan::Create(std::shared_ptr<const Profile> profile, uint32_t ratio) {
  const ProfileFacts& facts = profile->facts();
  std::shared_ptr<Plan> plan(new Plan);
  plan->ratio_ = ratio;
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits)
    plan->bounds_[bits] = BoundsOf(facts.books[bits].levels);
  BitPlan bits = PlanBits(facts, CodeBudget(facts, ratio));
  for (size_t g = 0; g < facts.groups.size(); ++g) {
    GroupPlan& own = plan->groups_.emplace_back();
    own.group = &facts.groups[g];
    own.bits = std::move(bits.bits[g]);
    own.bits_before.assign(1, 0);
    for (size_t j = 0; j < own.kept(); ++j) {
      own.bits_before.push_back(own.bits_before.back() + own.bits[j]);
      own.inverse.push_back(1 / own.group->deviation[j]);
      own.limits.push_back(EscapeLimit(bits.gain, own.group->deviation[j], facts.books[own.bits[j]]));
    }
    own.basis.resize(own.kept() * own.group->width());
    kernels::HalvesToFloats(own.group->basis, own.basis.size(), own.basis.data());
  }
  plan->profile_ = std::move(profile);
  return plan;
}

}  // namespace kvt
