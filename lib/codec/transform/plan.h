// Plan: what a profile means at one ratio: the bits of each component, and the tables in the form that
// encoding and decoding read.
//
// Immutable after Create, so thread-safe. Only multiplications, square roots and comparisons of doubles
// decide, so both sides come to the same bits.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_PLAN_H_
#define KVARTET_LIB_CODEC_TRANSFORM_PLAN_H_

#include <memory>
#include <vector>

#include "codec/profile.h"
#include "cpu/transform_codes.h"

namespace kvt {

// Bits of components, chosen so that a further bit anywhere would gain less than `gain` of variance, and none
// given gains less; together they fit the budget.
struct BitPlan {
  std::vector<std::vector<uint8_t>> bits;  // by group, of the components that have any
  double gain = 0;
};

BitPlan PlanBits(const ProfileFacts& facts, uint64_t budget);

// Bits that a token may have at a ratio: all but its gains, and but its gains and what escapes take on
// average.
uint64_t WholeBudget(const ProfileFacts& facts, uint32_t ratio);
uint64_t CodeBudget(const ProfileFacts& facts, uint32_t ratio);

inline constexpr uint64_t kEscapeBits = 64;

// The error, in deviations, above which an escape is worth its bits.
float EscapeLimit(double gain, float deviation, const ProfileBook& book);

struct GroupPlan {
  const ProfileGroup* group = nullptr;
  std::vector<uint8_t> bits;          // by component that is kept
  std::vector<uint64_t> bits_before;  // by component, and at the end the bits of a token
  std::vector<float> inverse;         // 1 / deviation
  std::vector<float> limits;          // errors above, in deviations, are worth an escape
  std::vector<float> basis;           // kept x width

  size_t kept() const { return bits.size(); }
  uint64_t token_bits() const { return bits_before.back(); }
  // Components that a token's gain is measured on.
  size_t leading() const { return (kept() + 1) / 2; }
};

class Plan {
 public:
  static std::shared_ptr<const Plan> Create(std::shared_ptr<const Profile> profile, uint32_t ratio);

  const Profile& profile() const { return *profile_; }
  uint32_t ratio() const { return ratio_; }
  const std::vector<GroupPlan>& groups() const { return groups_; }
  kernels::Book book(uint32_t bits) const {
    return {profile_->facts().books[bits].levels.data(), bounds_[bits].data(), bits};
  }

 private:
  Plan() = default;
  std::shared_ptr<const Profile> profile_;
  uint32_t ratio_ = 0;
  std::vector<GroupPlan> groups_;
  std::array<std::vector<float>, kBookBitsMax + 1> bounds_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_PLAN_H_
