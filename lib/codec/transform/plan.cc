#include "codec/transform/plan.h"

#include <algorithm>
#include <cmath>

#include "codec/transform/books.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

// An escape costs 64 bits: it pays where the squared error is above what so many bits would gain elsewhere.
constexpr double kEscapeBits = 64;
constexpr uint64_t kGainBits = 16;

// Variance that each further bit takes away, made non-increasing, so that bits are taken in order.
std::array<double, kBookBitsMax + 1> Gains(const Distortions& distortions) {
  std::array<double, kBookBitsMax + 1> gains{};
  double least = 1;
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
    least = std::min(least, std::max(distortions[bits - 1] - distortions[bits], 0.0));
    gains[bits] = least;
  }
  return gains;
}

uint8_t BitsOf(double variance, const std::array<double, kBookBitsMax + 1>& gains, double gain) {
  uint8_t bits = 0;
  while (bits < kBookBitsMax && variance * gains[bits + 1u] > gain) ++bits;
  return bits;
}

uint64_t Total(const std::vector<std::vector<float>>& deviations,
               const std::array<double, kBookBitsMax + 1>& gains, double gain) {
  uint64_t total = 0;
  for (const std::vector<float>& group : deviations) {
    for (const float deviation : group) {
      const uint8_t bits = BitsOf(double{deviation} * double{deviation}, gains, gain);
      if (bits == 0) break;
      total += bits;
    }
  }
  return total;
}

}  // namespace

BitPlan PlanBits(const std::vector<std::vector<float>>& deviations, const Distortions& distortions,
                 uint64_t budget) {
  const auto gains = Gains(distortions);
  // At `low` too many bits may be given, at `high` none is.
  double low = 0x1p-120, high = 0x1p+120;
  if (Total(deviations, gains, low) <= budget) {
    high = low;
  } else {
    for (int i = 0; i < 80; ++i) {
      const double middle = std::sqrt(low * high);
      (Total(deviations, gains, middle) > budget ? low : high) = middle;
    }
  }
  BitPlan plan;
  plan.gain = high;
  for (const std::vector<float>& group : deviations) {
    std::vector<uint8_t>& bits = plan.bits.emplace_back();
    for (const float deviation : group) {
      const uint8_t own = BitsOf(double{deviation} * double{deviation}, gains, high);
      if (own == 0) break;
      bits.push_back(own);
    }
  }
  return plan;
}

uint64_t ComponentBudget(uint64_t width, uint32_t element, uint64_t groups, uint32_t ratio) {
  const uint64_t bits = 8 * width * ElementBytes(element) / ratio, gains = kGainBits * groups;
  return bits > gains ? bits - gains : 0;
}

std::shared_ptr<const Plan> Plan::Create(std::shared_ptr<const Profile> profile, uint32_t ratio) {
  const ProfileFacts& facts = profile->facts();
  std::shared_ptr<Plan> plan(new Plan);
  plan->ratio_ = ratio;
  Distortions distortions;
  distortions[0] = 1;
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
    distortions[bits] = facts.books[bits].distortion;
    plan->bounds_[bits] = BoundsOf(facts.books[bits].levels);
  }
  std::vector<std::vector<float>> deviations;
  uint64_t width = 0;
  for (const ProfileGroup& group : facts.groups) {
    deviations.push_back(group.deviation);
    width += group.width();
  }
  BitPlan bits =
      PlanBits(deviations, distortions, ComponentBudget(width, facts.element, facts.groups.size(), ratio));
  const double worth = std::sqrt(kEscapeBits * bits.gain);
  for (size_t g = 0; g < facts.groups.size(); ++g) {
    GroupPlan& own = plan->groups_.emplace_back();
    own.group = &facts.groups[g];
    own.bits = std::move(bits.bits[g]);
    own.bits_before.assign(1, 0);
    for (size_t j = 0; j < own.kept(); ++j) {
      own.bits_before.push_back(own.bits_before.back() + own.bits[j]);
      own.inverse.push_back(1 / own.group->deviation[j]);
      // Where there is no wider book, errors inside of the book are no reason.
      const std::vector<float>& levels = facts.books[own.bits[j]].levels;
      const float outermost = std::max(levels[1] - levels[0], levels.back() - levels[levels.size() - 2]);
      own.limits.push_back(std::max(static_cast<float>(worth) * own.inverse[j], outermost));
    }
    own.basis.resize(own.kept() * own.group->width());
    kernels::HalvesToFloats(own.group->basis, own.basis.size(), own.basis.data());
  }
  plan->profile_ = std::move(profile);
  return plan;
}

}  // namespace kvt
