// KIVI's two groupings of asymmetric codes of `bits` (2, 4 or 8) bits, and the scalar reference. Codes are
// packed from the lowest bits of a byte upwards, channel after channel; a token's codes begin at a byte.
//
// By token (V): the record of a token is an f16 scale for each group, an f16 minimum for each group, the
// codes. A group is `group` channels of one head; a head's last group may be shorter. By channel (K): the
// record of some tokens is an f16 scale for each channel, an f16 minimum for each channel, and each token's
// codes.
#ifndef KVARTET_KERNELS_COMMON_KIVI_H_
#define KVARTET_KERNELS_COMMON_KIVI_H_

#include <algorithm>

#include "common/lossy.h"
#include "common/pack.h"

namespace kvt::kernels {

inline size_t KiviGroups(size_t heads, size_t dim, size_t group) {
  return heads * ((dim + group - 1) / group);
}
inline size_t KiviTokenRecordBytes(size_t heads, size_t dim, size_t group, uint32_t bits) {
  return KiviGroups(heads, dim, group) * 2 * sizeof(uint16_t) + CodeBytes(heads * dim, bits);
}
inline size_t KiviChannelRecordBytes(size_t tokens, size_t channels, uint32_t bits) {
  return channels * 2 * sizeof(uint16_t) + tokens * CodeBytes(channels, bits);
}

namespace reference {

inline void KiviTokenEncode(Element element, uint32_t bits, const void* const* rows, size_t count,
                            size_t heads, size_t dim, size_t group, uint8_t* out, uint64_t* nonfinite) {
  const int32_t levels = (1 << bits) - 1;
  const size_t groups = KiviGroups(heads, dim, group);
  const size_t record = KiviTokenRecordBytes(heads, dim, group, bits);
  for (size_t r = 0; r < count; ++r, out += record) {
    std::memset(out, 0, record);
    uint8_t* codes = out + groups * 2 * sizeof(uint16_t);
    size_t index = 0;
    for (size_t h = 0; h < heads; ++h) {
      for (size_t begin = 0; begin < dim; begin += group, ++index) {
        const size_t from = h * dim + begin, to = h * dim + std::min(begin + group, dim);
        float low = kLossyMax, high = -kLossyMax;
        for (size_t c = from; c < to; ++c) {
          const float value = Admit(LoadElement(element, rows[r], c), nonfinite);
          low = std::min(low, value);
          high = std::max(high, value);
        }
        const GroupScale scale = ScaleOfGroup(low, high, levels);
        StoreHalf(scale.scale, out, index);
        StoreHalf(scale.minimum, out, groups + index);
        const float inverse = InverseOf(F16ToF32(scale.scale)), minimum = F16ToF32(scale.minimum);
        for (size_t c = from; c < to; ++c) {
          const float value = Saturate(LoadElement(element, rows[r], c));
          AddCode(CodeOf(value - minimum, inverse, 0, levels), codes, c, bits);
        }
      }
    }
  }
}

inline void KiviTokenDecode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads,
                            size_t dim, size_t group, void* const* rows) {
  const size_t groups = KiviGroups(heads, dim, group), a_head = groups / heads;
  const size_t record = KiviTokenRecordBytes(heads, dim, group, bits);
  for (size_t r = 0; r < count; ++r, in += record) {
    const uint8_t* codes = in + groups * 2 * sizeof(uint16_t);
    for (size_t c = 0; c < heads * dim; ++c) {
      const size_t index = c / dim * a_head + c % dim / group;
      const float scale = LoadScale(in, index), minimum = LoadScale(in, groups + index);
      StoreElement(element, ValueOf(LoadCode(codes, c, bits), scale, minimum), rows[r], c);
    }
  }
}

inline void KiviChannelEncode(Element element, uint32_t bits, const void* const* rows, size_t tokens,
                              size_t channels, uint8_t* out, uint64_t* nonfinite) {
  const int32_t levels = (1 << bits) - 1;
  std::memset(out, 0, KiviChannelRecordBytes(tokens, channels, bits));
  uint8_t* codes = out + channels * 2 * sizeof(uint16_t);
  for (size_t c = 0; c < channels; ++c) {
    float low = kLossyMax, high = -kLossyMax;
    for (size_t t = 0; t < tokens; ++t) {
      const float value = Admit(LoadElement(element, rows[t], c), nonfinite);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    const GroupScale scale = ScaleOfGroup(low, high, levels);
    StoreHalf(scale.scale, out, c);
    StoreHalf(scale.minimum, out, channels + c);
    const float inverse = InverseOf(F16ToF32(scale.scale)), minimum = F16ToF32(scale.minimum);
    for (size_t t = 0; t < tokens; ++t) {
      const float value = Saturate(LoadElement(element, rows[t], c));
      AddCode(CodeOf(value - minimum, inverse, 0, levels), codes + t * CodeBytes(channels, bits), c, bits);
    }
  }
}

inline void KiviChannelDecode(Element element, uint32_t bits, const uint8_t* in, size_t tokens,
                              size_t channels, void* const* rows) {
  const uint8_t* codes = in + channels * 2 * sizeof(uint16_t);
  for (size_t t = 0; t < tokens; ++t, codes += CodeBytes(channels, bits)) {
    for (size_t c = 0; c < channels; ++c) {
      const float scale = LoadScale(in, c), minimum = LoadScale(in, channels + c);
      StoreElement(element, ValueOf(LoadCode(codes, c, bits), scale, minimum), rows[t], c);
    }
  }
}

}  // namespace reference
}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_KIVI_H_
