// int8: symmetric, one scale a token and head. The record of a token: an f16 scale for each head, then a
// signed byte (-127 to 127) for each element, head after head. This is the scalar reference.
#ifndef KVARTET_KERNELS_COMMON_INT8_H_
#define KVARTET_KERNELS_COMMON_INT8_H_

#include "common/lossy.h"

namespace kvt::kernels {

inline constexpr int32_t kInt8Levels = 127;

inline size_t Int8RecordBytes(size_t heads, size_t dim) { return heads * (sizeof(uint16_t) + dim); }

namespace reference {

inline void Int8Encode(Element element, const void* const* rows, size_t count, size_t heads, size_t dim,
                       uint8_t* out, uint64_t* nonfinite) {
  for (size_t r = 0; r < count; ++r, out += Int8RecordBytes(heads, dim)) {
    uint8_t* codes = out + heads * sizeof(uint16_t);
    for (size_t h = 0; h < heads; ++h) {
      float largest = 0;
      for (size_t e = 0; e < dim; ++e) {
        const float value = std::fabs(Admit(LoadElement(element, rows[r], h * dim + e), nonfinite));
        largest = value > largest ? value : largest;
      }
      const uint16_t scale = F16Up(largest / static_cast<float>(kInt8Levels));
      StoreHalf(scale, out, h);
      const float inverse = InverseOf(F16ToF32(scale));
      for (size_t e = h * dim; e < (h + 1) * dim; ++e) {
        const float value = Saturate(LoadElement(element, rows[r], e));
        codes[e] = static_cast<uint8_t>(CodeOf(value, inverse, -kInt8Levels, kInt8Levels));
      }
    }
  }
}

inline void Int8Decode(Element element, const uint8_t* in, size_t count, size_t heads, size_t dim,
                       void* const* rows) {
  for (size_t r = 0; r < count; ++r, in += Int8RecordBytes(heads, dim)) {
    const uint8_t* codes = in + heads * sizeof(uint16_t);
    for (size_t e = 0; e < heads * dim; ++e) {
      const float scale = LoadScale(in, e / dim);
      StoreElement(element, ValueOf(static_cast<int8_t>(codes[e]), scale, 0), rows[r], e);
    }
  }
}

}  // namespace reference
}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_INT8_H_
