// What all lossy codecs share: which values they take, and how scale and minimum are rounded to f16.
//
// Values are taken as floats; NaN counts as 0 and everything beyond +-65504, the largest finite f16, as that
// bound. The scale is rounded up and the minimum down, so the codes always reach from the smallest value to
// the largest. A code has at most 8 bits and a scale 11, so their product is exact in float and every
// instruction set gives the same bytes.
#ifndef KVARTET_KERNELS_COMMON_LOSSY_H_
#define KVARTET_KERNELS_COMMON_LOSSY_H_

#include <cmath>

#include "common/element.h"

namespace kvt::kernels {

inline constexpr float kLossyMax = 65504.0f;

inline float Clamp(float value) {
  return value > kLossyMax ? kLossyMax : value < -kLossyMax ? -kLossyMax : value;
}

// Adding 0 makes -0 to 0, so that a group's smallest value does not depend on the order of comparing.
inline float Saturate(float value) { return value != value ? 0.0f : Clamp(value) + 0.0f; }

// Saturate, and a count of NaN and infinities.
inline float Admit(float value, uint64_t* nonfinite) {
  *nonfinite += !(std::fabs(value) <= 3.40282347e38f);
  return Saturate(value);
}

// The smallest f16 that is not below `value`, which is 0 to 65504.
inline uint16_t F16Up(float value) {
  const uint16_t half = F32ToF16(value);
  return F16ToF32(half) < value ? static_cast<uint16_t>(half + 1) : half;
}

// The largest f16 that is not above `value`, which is -65504 to 65504.
inline uint16_t F16Down(float value) {
  const uint16_t half = F32ToF16(value);
  if (!(F16ToF32(half) > value)) return half;
  return static_cast<uint16_t>((half & 0x8000u) != 0 ? half + 1 : half - 1);
}

inline uint16_t LoadHalf(const uint8_t* from, size_t index) {
  uint16_t half;
  std::memcpy(&half, from + index * sizeof half, sizeof half);
  return half;
}

// A scale or minimum; finite whatever the bytes are.
inline float LoadScale(const uint8_t* from, size_t index) {
  return Saturate(F16ToF32(LoadHalf(from, index)));
}

inline void StoreHalf(uint16_t half, uint8_t* to, size_t index) {
  std::memcpy(to + index * sizeof half, &half, sizeof half);
}

inline float InverseOf(float scale) { return scale > 0 ? 1.0f / scale : 0.0f; }

// The code of the value at `distance` from its zero point.
inline int32_t CodeOf(float distance, float inverse, int32_t low, int32_t high) {
  const float code = std::nearbyintf(distance * inverse);
  return static_cast<int32_t>(code < static_cast<float>(low)    ? static_cast<float>(low)
                              : code > static_cast<float>(high) ? static_cast<float>(high)
                                                                : code);
}

inline float ValueOf(int32_t code, float scale, float minimum) {
  return Clamp(static_cast<float>(code) * scale + minimum);
}

// Scale and minimum of an asymmetric group of values from `low` to `high`, with codes 0 to `levels`.
struct GroupScale {
  uint16_t scale, minimum;
};
inline GroupScale ScaleOfGroup(float low, float high, int32_t levels) {
  const uint16_t minimum = F16Down(low);
  return {F16Up((high - F16ToF32(minimum)) / static_cast<float>(levels)), minimum};
}

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_LOSSY_H_
