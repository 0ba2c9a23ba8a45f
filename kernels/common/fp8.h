// fp8: one scale a token and head. The record of a token: an f16 scale for each head, then a byte for each
// element, head after head: sign, exponent and mantissa of E4M3 (4 and 3 bits, largest 448) or E5M2 (5 and 2
// bits, largest 57344). This is the scalar reference.
//
// A mantissa has at most 4 bits and a scale 11, so their product is exact in float.
#ifndef KVARTET_KERNELS_COMMON_FP8_H_
#define KVARTET_KERNELS_COMMON_FP8_H_

#include <algorithm>

#include "common/lossy.h"

namespace kvt::kernels {

enum class Fp8 { kE4m3, kE5m2 };

struct E4m3 {
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr uint8_t kMost = 0x7e;  // the largest finite magnitude
  static constexpr uint8_t kNan = 0x7f;   // the first magnitude that is NaN; those between are infinite
};
struct E5m2 {
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr uint8_t kMost = 0x7b;
  static constexpr uint8_t kNan = 0x7d;
};

// What the largest magnitude of a head becomes, in either format. E5M2 could take more, but then the scales
// of ordinary rows would be subnormal.
inline constexpr float kFp8Top = 448.0f;

// 2 to the power of `exponent`, within the normal floats.
inline constexpr float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// Calls body(format) with the type of `format`.
template <typename Body>
inline void WithFp8(Fp8 format, const Body& body) {
  if (format == Fp8::kE4m3) return body(E4m3());
  body(E5m2());
}

inline size_t Fp8RecordBytes(size_t heads, size_t dim) { return heads * (sizeof(uint16_t) + dim); }

namespace reference {

// NaN reads as 0 and infinities as the largest finite value.
template <typename F>
inline float Fp8ToF32(uint8_t code) {
  uint32_t magnitude = code & 0x7fu;
  magnitude = magnitude >= F::kNan ? 0 : std::min<uint32_t>(magnitude, F::kMost);
  const float value =
      magnitude < (1u << F::kMantissa)
          ? static_cast<float>(magnitude) * PowerOfTwo(1 - F::kBias - F::kMantissa)
          : std::bit_cast<float>((magnitude << (23 - F::kMantissa)) + ((127u - F::kBias) << 23));
  return (code & 0x80u) != 0 ? -value : value;
}

// Of a finite value: rounds to nearest even, saturates at the largest finite value.
template <typename F>
inline uint8_t F32ToFp8(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  uint32_t code;
  if (magnitude < ((128u - F::kBias) << 23)) {
    const float steps = std::bit_cast<float>(magnitude) * PowerOfTwo(F::kBias - 1 + F::kMantissa);
    code = static_cast<uint32_t>(std::nearbyintf(steps));
  } else {
    const uint32_t odd = (magnitude >> (23 - F::kMantissa)) & 1u;
    code = (magnitude - ((127u - F::kBias) << 23) + (1u << (22 - F::kMantissa)) - 1 + odd) >>
           (23 - F::kMantissa);
    code = std::min<uint32_t>(code, F::kMost);
  }
  return static_cast<uint8_t>(sign | code);
}

inline void Fp8Encode(Fp8 format, Element element, const void* const* rows, size_t count, size_t heads,
                      size_t dim, uint8_t* out, uint64_t* nonfinite) {
  WithFp8(format, [&](auto type) {
    using F = decltype(type);
    for (size_t r = 0; r < count; ++r, out += Fp8RecordBytes(heads, dim)) {
      uint8_t* codes = out + heads * sizeof(uint16_t);
      for (size_t h = 0; h < heads; ++h) {
        float largest = 0;
        for (size_t e = h * dim; e < (h + 1) * dim; ++e)
          largest = std::max(largest, std::fabs(Admit(LoadElement(element, rows[r], e), nonfinite)));
        const uint16_t scale = F16Up(largest / kFp8Top);
        StoreHalf(scale, out, h);
        const float inverse = InverseOf(F16ToF32(scale));
        for (size_t e = h * dim; e < (h + 1) * dim; ++e)
          codes[e] = F32ToFp8<F>(Saturate(LoadElement(element, rows[r], e)) * inverse);
      }
    }
  });
}

inline void Fp8Decode(Fp8 format, Element element, const uint8_t* in, size_t count, size_t heads, size_t dim,
                      void* const* rows) {
  WithFp8(format, [&](auto type) {
    using F = decltype(type);
    for (size_t r = 0; r < count; ++r, in += Fp8RecordBytes(heads, dim)) {
      const uint8_t* codes = in + heads * sizeof(uint16_t);
      for (size_t e = 0; e < heads * dim; ++e)
        StoreElement(element, Clamp(Fp8ToF32<F>(codes[e]) * LoadScale(in, e / dim)), rows[r], e);
    }
  });
}

}  // namespace reference
}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_FP8_H_
