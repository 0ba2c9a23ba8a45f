#include "cpu/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/softmax.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// Built for each target, so it comes after these.
#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLanesMax = 16;
using Tag = hn::CappedTag<float, kLanesMax>;
using Vector = hn::Vec<Tag>;
constexpr float kMost = std::numeric_limits<float>::max();

// Bounded scale x; NaN stays.
Vector Scaled(Tag d, const float* from, Vector scale) {
  const Vector x = hn::Mul(hn::LoadU(d, from), scale);
  return hn::IfThenElse(hn::Eq(x, x), hn::Min(hn::Max(x, hn::Set(d, -kMost)), hn::Set(d, kMost)), x);
}

float ExpRow(float* row, size_t count, float scale) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  const Vector factor = hn::Set(d, scale), lowest = hn::Set(d, -kMost);
  // The last, incomplete vector, filled up with NaN, which weighs nothing.
  HWY_ALIGN float tail[kLanesMax];
  std::fill(tail, tail + kLanesMax, std::numeric_limits<float>::quiet_NaN());
  std::copy(row + whole, row + count, tail);
  Vector best = lowest;
  const auto look = [&](const float* from) HWY_ATTR {
    const Vector x = Scaled(d, from, factor);
    best = hn::Max(best, hn::IfThenElse(hn::Eq(x, x), x, lowest));
  };
  for (size_t t = 0; t < whole; t += lanes) look(row + t);
  if (whole != count) look(tail);
  const Vector highest = hn::MaxOfLanes(d, best);
  Vector sum = hn::Zero(d);
  const auto replace = [&](float* at) HWY_ATTR {
    const Vector x = Scaled(d, at, factor);
    const Vector weight = hn::IfThenElseZero(hn::Eq(x, x), hn::Exp(d, hn::Sub(x, highest)));
    sum = hn::Add(sum, weight);
    hn::StoreU(weight, d, at);
  };
  for (size_t t = 0; t < whole; t += lanes) replace(row + t);
  if (whole != count) replace(tail);
  std::copy(tail, tail + (count - whole), row + whole);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void AddScaled(const float* row, size_t count, float factor, float* sums) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  const Vector by = hn::Set(d, factor);
  for (size_t t = 0; t < whole; t += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, row + t), by, hn::LoadU(d, sums + t)), d, sums + t);
  for (size_t t = whole; t < count; ++t) sums[t] += factor * row[t];
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(ExpRow);
HWY_EXPORT(AddScaled);

float ExpRow(float* row, size_t count, float scale) {
  return HWY_DYNAMIC_DISPATCH(ExpRow)(row, count, scale);
}

void AddScaled(const float* row, size_t count, float factor, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(row, count, factor, sums);
}

}  // namespace kvt::kernels
#endif  // HWY_ONCE
