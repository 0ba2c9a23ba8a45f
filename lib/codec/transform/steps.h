// Steps and scales of the dense mode in whole sixteenths of an octave, so that every machine comes to the
// same numbers.
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_STEPS_H_
#define KVARTET_LIB_CODEC_TRANSFORM_STEPS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kvartet/select.h"

namespace kvt {

inline constexpr int32_t kOctave = 16;              // sixteenths
inline constexpr int32_t kStepMost = 40 * kOctave;  // a frame's step is within 2^-40 to 2^40
// Quarters of an octave: of a token's gain, and of its importance.
inline constexpr int32_t kGainMost = 60;
inline constexpr int32_t kImportanceLeast = KVT_IMPORTANCE_MIN, kImportanceMost = KVT_IMPORTANCE_MAX;

inline constexpr std::array<double, kOctave + 1> kSixteenths = {1.0,
                                                                1.0442737824274138,
                                                                1.0905077326652577,
                                                                1.1387886347566916,
                                                                1.189207115002721,
                                                                1.241857812073484,
                                                                1.2968395546510096,
                                                                1.3542555469368927,
                                                                1.4142135623730951,
                                                                1.4768261459394993,
                                                                1.5422108254079407,
                                                                1.6104903319492543,
                                                                1.681792830507429,
                                                                1.7562521603732995,
                                                                1.8340080864093424,
                                                                1.9152065613971474,
                                                                2.0};

// 2^(sixteenths / 16).
inline float StepOf(int32_t sixteenths) {
  const int32_t octaves = sixteenths >> 4;
  return static_cast<float>(std::ldexp(kSixteenths[static_cast<size_t>(sixteenths & 15)], octaves));
}

// The sixteenths whose step is nearest below a positive finite value, or equal to it.
inline int32_t SixteenthsOf(float value) {
  int exponent = 0;
  const double mantissa = 2 * std::frexp(double{value}, &exponent);
  const auto above = std::upper_bound(kSixteenths.begin(), kSixteenths.end(), mantissa);
  return (exponent - 1) * kOctave + static_cast<int32_t>(above - kSixteenths.begin()) - 1;
}

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_STEPS_H_
