// Trellis-coded quantisation with 8 states: the two quantisers, the transitions, and the scalar walk that
// vector code is tested against. docs/transform.md has the rule.
//
// A value u, in steps, becomes an integer k. In an even state k stands for 2k, in an odd one for 2k -
// sign(k); k's lowest bit chooses the next state. Together the quantisers have levels at every integer,
// though each spends bits as if it had half of them.
#ifndef KVARTET_KERNELS_COMMON_TRELLIS_H_
#define KVARTET_KERNELS_COMMON_TRELLIS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace kvt::kernels {

inline constexpr uint32_t kTrellisStates = 8;
// Values beyond are taken as this many steps; k fits 16 bits.
inline constexpr float kTrellisMost = 32768.0f;
// Magnitudes of k that have a price of their own.
inline constexpr uint32_t kTrellisPrices = 16;
// Magnitudes of k that have a centre of their own: 0, 1, 2, and 3 for all above.
inline constexpr uint32_t kTrellisCentres = 4;

inline constexpr uint8_t kTrellisNext[kTrellisStates][2] = {{0, 2}, {5, 7}, {1, 3}, {6, 4},
                                                            {2, 0}, {4, 6}, {3, 1}, {7, 5}};

// Each state is reached from two, by one value of k's lowest bit each.
struct TrellisArrival {
  uint8_t from, bit;
};
inline constexpr struct TrellisArrivals {
  TrellisArrival of[kTrellisStates][2] = {};
  constexpr TrellisArrivals() {
    for (uint8_t next = 0; next < kTrellisStates; ++next) {
      uint32_t found = 0;
      for (uint8_t from = 0; from < kTrellisStates; ++from) {
        for (uint8_t bit = 0; bit < 2; ++bit)
          if (kTrellisNext[from][bit] == next) of[next][found++] = {from, bit};
      }
    }
  }
} kTrellisArrivals;

// One component of many tokens, in a context of tables: token t uses the prices and centres of table
// tables[t] + (state & 1).
struct TrellisContext {
  const float* prices = nullptr;   // kTrellisPrices for each table: squared steps
  const float* centres = nullptr;  // kTrellisCentres for each table: added to the level's magnitude
};

// The level of |k| = `magnitude`.
inline float TrellisLevel(uint32_t magnitude, uint32_t state) {
  const uint32_t odd = state & 1 & (magnitude != 0 ? 1u : 0u);
  return static_cast<float>(2 * magnitude - odd);
}

// The magnitude of k with the lowest bit `bit` that costs least for |u| = `distance` in a state, and its
// cost.
struct TrellisChoice {
  uint32_t magnitude;
  float cost;
};
inline float TrellisCost(float distance, uint32_t magnitude, uint32_t state, const float* prices) {
  const float error = distance - TrellisLevel(magnitude, state);
  return error * error + prices[magnitude < kTrellisPrices ? magnitude : kTrellisPrices - 1];
}
inline TrellisChoice ChooseTrellis(float distance, uint32_t state, uint32_t bit, const float* prices) {
  // Of levels 4m + 2 bit in even states, 4m - 1 + 2 bit in odd ones, the nearest; and the one below it.
  const float shift = static_cast<float>(2 * bit) - static_cast<float>(state & 1);
  const float nearest = std::nearbyintf((distance - shift) * 0.25f);
  const uint32_t high = 2 * static_cast<uint32_t>(nearest > 0 ? nearest : 0.0f) + bit;
  const uint32_t low = high >= 2 ? high - 2 : high;
  const float high_cost = TrellisCost(distance, high, state, prices);
  const float low_cost = TrellisCost(distance, low, state, prices);
  return low_cost <= high_cost ? TrellisChoice{low, low_cost} : TrellisChoice{high, high_cost};
}

namespace reference {

// One component of `count` tokens: costs[s * stride + t] are the costs of the best ways to state s, renewed;
// bit s of arrivals[t] says which of the two ways won.
inline void TrellisStep(const TrellisContext& context, const float* values, const float* factors,
                        const uint16_t* tables, size_t count, size_t stride, float* costs,
                        uint8_t* arrivals) {
  for (size_t t = 0; t < count; ++t) {
    const float scaled = std::fabs(values[t] * factors[t]);
    const float distance = scaled < kTrellisMost ? scaled : kTrellisMost;
    float parts[2][2], before[kTrellisStates];
    for (uint32_t odd = 0; odd < 2; ++odd) {
      const float* prices = context.prices + (tables[t] + odd) * kTrellisPrices;
      for (uint32_t bit = 0; bit < 2; ++bit) parts[odd][bit] = ChooseTrellis(distance, odd, bit, prices).cost;
    }
    for (uint32_t s = 0; s < kTrellisStates; ++s) before[s] = costs[s * stride + t];
    uint8_t won = 0;
    for (uint32_t s = 0; s < kTrellisStates; ++s) {
      const TrellisArrival first = kTrellisArrivals.of[s][0], second = kTrellisArrivals.of[s][1];
      const float a = before[first.from] + parts[first.from & 1][first.bit];
      const float b = before[second.from] + parts[second.from & 1][second.bit];
      costs[s * stride + t] = b < a ? b : a;
      won = static_cast<uint8_t>(won | (b < a ? 1u : 0u) << s);
    }
    arrivals[t] = won;
  }
}

}  // namespace reference

// Goes back one component: from the states after it to k and the states before it, which replace them.
inline void TrellisBack(const TrellisContext& context, const float* values, const float* factors,
                        const uint16_t* tables, const uint8_t* arrivals, size_t count, uint8_t* states,
                        int16_t* codes) {
  for (size_t t = 0; t < count; ++t) {
    const uint32_t next = states[t];
    const TrellisArrival arrival = kTrellisArrivals.of[next][arrivals[t] >> next & 1];
    const float scaled = std::fabs(values[t] * factors[t]);
    const float distance = scaled < kTrellisMost ? scaled : kTrellisMost;
    const float* prices = context.prices + (tables[t] + (arrival.from & 1u)) * kTrellisPrices;
    const auto magnitude =
        static_cast<int16_t>(ChooseTrellis(distance, arrival.from, arrival.bit, prices).magnitude);
    codes[t] = values[t] < 0 ? static_cast<int16_t>(-magnitude) : magnitude;
    states[t] = arrival.from;
  }
}

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_TRELLIS_H_
