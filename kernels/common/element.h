// The element types that kernels convert between, and the scalar conversion of a run of elements.
#ifndef KVARTET_KERNELS_COMMON_ELEMENT_H_
#define KVARTET_KERNELS_COMMON_ELEMENT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/convert.h"

namespace kvt::kernels {

enum class Element : uint32_t { kF32 = 1, kF16 = 2, kBf16 = 3 };

inline float LoadElement(Element element, const void* data, size_t index) {
  if (element == Element::kF32) {
    float value;
    std::memcpy(&value, static_cast<const uint8_t*>(data) + index * sizeof value, sizeof value);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, static_cast<const uint8_t*>(data) + index * sizeof half, sizeof half);
  return element == Element::kF16 ? F16ToF32(half) : Bf16ToF32(half);
}

inline void StoreElement(Element element, float value, void* data, size_t index) {
  if (element == Element::kF32) {
    std::memcpy(static_cast<uint8_t*>(data) + index * sizeof value, &value, sizeof value);
    return;
  }
  const uint16_t half = element == Element::kF16 ? F32ToF16(value) : F32ToBf16(value);
  std::memcpy(static_cast<uint8_t*>(data) + index * sizeof half, &half, sizeof half);
}

inline void ConvertElements(Element from, const void* data, Element to, void* out, size_t count) {
  for (size_t i = 0; i < count; ++i) StoreElement(to, LoadElement(from, data, i), out, i);
}

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_ELEMENT_H_
