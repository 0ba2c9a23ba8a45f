#include "cpu/trellis.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/trellis.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
using IntVec = hn::Vec<IntTag>;

// What the best k of a quantiser and lowest bit costs at each lane's distance.
template <int kOdd, int kBit>
HWY_INLINE FloatVec PartCost(const float* prices, FloatVec distance, IntVec first_price) {
  const FloatTag d;
  const IntTag di;
  const auto zero = hn::Zero(d);
  const auto shift = hn::Set(d, static_cast<float>(2 * kBit - kOdd));
  const auto nearest = hn::Max(hn::Round(hn::Mul(hn::Sub(distance, shift), hn::Set(d, 0.25f))), zero);
  const auto high = hn::Add(hn::Add(nearest, nearest), hn::Set(d, static_cast<float>(kBit)));
  const auto below = hn::Sub(high, hn::Set(d, 2.0f));
  const auto low = hn::IfThenElse(hn::Lt(below, zero), high, below);
  const auto top = hn::Set(di, static_cast<int32_t>(kTrellisPrices) - 1);
  const auto cost = [&](FloatVec magnitude) {
    auto level = hn::Add(magnitude, magnitude);
    if (kOdd != 0) level = hn::Max(hn::Sub(level, hn::Set(d, 1.0f)), zero);
    const auto error = hn::Sub(distance, level);
    const auto index = hn::Add(first_price, hn::Min(hn::ConvertTo(di, magnitude), top));
    return hn::MulAdd(error, error, hn::GatherIndex(d, prices, index));
  };
  return hn::Min(cost(low), cost(high));
}

void Step(const TrellisContext& context, const float* values, const float* factors, const uint16_t* tables,
          size_t count, size_t stride, float* costs, uint8_t* arrivals) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<uint16_t, FloatTag> d16;
  const hn::Rebind<uint8_t, FloatTag> d8;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  const auto most = hn::Set(d, kTrellisMost);
  for (size_t t = 0; t < whole; t += lanes) {
    const auto value = hn::Mul(hn::LoadU(d, values + t), hn::LoadU(d, factors + t));
    const auto distance = hn::Min(hn::Abs(value), most);
    const auto table = hn::PromoteTo(di, hn::LoadU(d16, tables + t));
    const auto even = hn::Mul(table, hn::Set(di, static_cast<int32_t>(kTrellisPrices)));
    const auto odd = hn::Add(even, hn::Set(di, static_cast<int32_t>(kTrellisPrices)));
    const FloatVec e0 = PartCost<0, 0>(context.prices, distance, even);
    const FloatVec e1 = PartCost<0, 1>(context.prices, distance, even);
    const FloatVec o0 = PartCost<1, 0>(context.prices, distance, odd);
    const FloatVec o1 = PartCost<1, 1>(context.prices, distance, odd);
    const auto before = [&](size_t s) { return hn::LoadU(d, costs + s * stride + t); };
    const FloatVec c0 = before(0), c1 = before(1), c2 = before(2), c3 = before(3), c4 = before(4),
                   c5 = before(5), c6 = before(6), c7 = before(7);
    auto won = hn::Zero(di);
    // The two ways, in the order of kTrellisArrivals.
    const auto arrive = [&](size_t s, FloatVec a, FloatVec b) {
      const auto second = hn::Lt(b, a);
      hn::StoreU(hn::IfThenElse(second, b, a), d, costs + s * stride + t);
      won = hn::Or(won, hn::IfThenElseZero(hn::RebindMask(di, second), hn::Set(di, 1 << s)));
    };
    arrive(0, hn::Add(c0, e0), hn::Add(c4, e1));
    arrive(1, hn::Add(c2, e0), hn::Add(c6, e1));
    arrive(2, hn::Add(c0, e1), hn::Add(c4, e0));
    arrive(3, hn::Add(c2, e1), hn::Add(c6, e0));
    arrive(4, hn::Add(c3, o1), hn::Add(c5, o0));
    arrive(5, hn::Add(c1, o0), hn::Add(c7, o1));
    arrive(6, hn::Add(c3, o0), hn::Add(c5, o1));
    arrive(7, hn::Add(c1, o1), hn::Add(c7, o0));
    hn::StoreU(hn::DemoteTo(d8, won), d8, arrivals + t);
  }
  reference::TrellisStep(context, values + whole, factors + whole, tables + whole, count - whole, stride,
                         costs + whole, arrivals + whole);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Step);

void TrellisStep(const TrellisContext& context, const float* values, const float* factors,
                 const uint16_t* tables, size_t count, size_t stride, float* costs, uint8_t* arrivals) {
  HWY_DYNAMIC_DISPATCH(Step)(context, values, factors, tables, count, stride, costs, arrivals);
}

}  // namespace kvt::kernels
#endif
