// A scalar quantiser with the prices of the trellis (common/trellis.h): what a trellis does that never leaves
// state 0, where k stands for 2k steps.
//
// Stateless and thread-safe.
#ifndef KVARTET_KERNELS_COMMON_SCALAR_H_
#define KVARTET_KERNELS_COMMON_SCALAR_H_

#include "common/trellis.h"

namespace kvt::kernels::reference {

// One component of `count` tokens, in the tables of even states: codes[t] is the nearest k or the one below
// it in magnitude, whichever costs less.
inline void ScalarCodes(const TrellisContext& context, const float* values, const float* factors,
                        const uint16_t* tables, size_t count, int16_t* codes) {
  for (size_t t = 0; t < count; ++t) {
    const float scaled = std::fabs(values[t] * factors[t]);
    const float distance = scaled < kTrellisMost ? scaled : kTrellisMost;
    const float* prices = context.prices + tables[t] * kTrellisPrices;
    const auto high = static_cast<uint32_t>(std::nearbyintf(distance * 0.5f));
    const uint32_t low = high > 0 ? high - 1 : 0;
    const bool lower = TrellisCost(distance, low, 0, prices) <= TrellisCost(distance, high, 0, prices);
    const auto magnitude = static_cast<int16_t>(lower ? low : high);
    codes[t] = values[t] < 0 ? static_cast<int16_t>(-magnitude) : magnitude;
  }
}

}  // namespace kvt::kernels::reference

#endif  // KVARTET_KERNELS_COMMON_SCALAR_H_
