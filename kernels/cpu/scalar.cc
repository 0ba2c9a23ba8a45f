#include "cpu/scalar.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/scalar.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void Codes(const TrellisContext& context, const float* values, const float* factors, const uint16_t* tables,
           size_t count, int16_t* codes) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const hn::Rebind<int16_t, decltype(d)> s16;
  using FloatVec = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  const auto top = hn::Set(di, static_cast<int32_t>(kTrellisPrices) - 1);
  for (size_t t = 0; t < whole; t += lanes) {
    const FloatVec value = hn::LoadU(d, values + t);
    const FloatVec scaled = hn::Abs(hn::Mul(value, hn::LoadU(d, factors + t)));
    const FloatVec distance = hn::Min(scaled, hn::Set(d, kTrellisMost));
    const auto table = hn::PromoteTo(di, hn::LoadU(d16, tables + t));
    const auto first_price = hn::Mul(table, hn::Set(di, static_cast<int32_t>(kTrellisPrices)));
    const auto cost = [&](FloatVec magnitude) HWY_ATTR {
      const FloatVec error = hn::Sub(distance, hn::Add(magnitude, magnitude));
      const auto index = hn::Add(first_price, hn::Min(hn::ConvertTo(di, magnitude), top));
      return hn::MulAdd(error, error, hn::GatherIndex(d, context.prices, index));
    };
    const FloatVec high = hn::Round(hn::Mul(distance, hn::Set(d, 0.5f)));
    const FloatVec low = hn::Max(hn::Sub(high, hn::Set(d, 1.0f)), hn::Zero(d));
    const FloatVec magnitude = hn::IfThenElse(hn::Le(cost(low), cost(high)), low, high);
    const FloatVec code = hn::CopySign(magnitude, value);
    hn::StoreU(hn::DemoteTo(s16, hn::ConvertTo(di, code)), s16, codes + t);
  }
  reference::ScalarCodes(context, values + whole, factors + whole, tables + whole, count - whole,
                         codes + whole);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Codes);

void ScalarCodes(const TrellisContext& context, const float* values, const float* factors,
                 const uint16_t* tables, size_t count, int16_t* codes) {
  HWY_DYNAMIC_DISPATCH(Codes)(context, values, factors, tables, count, codes);
}

}  // namespace kvt::kernels
#endif
