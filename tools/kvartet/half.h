// f16 rows of an engine's blob as floats. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_HALF_H_
#define KVARTET_TOOLS_KVARTET_HALF_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/kv_blob.h"

namespace kvt::cli {

inline float FromHalf(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float small = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }
  const uint32_t widened = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (widened << 23) | (mantissa << 13));
}

// The row of one token and head.
inline void ReadHead(const engine::RowView& rows, int32_t token, size_t head, std::span<float> out) {
  const uint8_t* from = rows.base + token * rows.token_stride + static_cast<int64_t>(head) * rows.head_stride;
  for (float& value : out) {
    uint16_t half = 0;
    std::memcpy(&half, from, sizeof half);
    value = FromHalf(half);
    from += rows.element_stride;
  }
}

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_HALF_H_
