// Codes of 1, 2, 4 or 8 bits, packed from the lowest bits of a byte upwards, and the scalar reference.
#ifndef KVARTET_KERNELS_COMMON_PACK_H_
#define KVARTET_KERNELS_COMMON_PACK_H_

#include <cstddef>
#include <cstdint>

namespace kvt::kernels {

inline size_t CodeBytes(size_t count, uint32_t bits) { return (count * bits + 7) / 8; }

namespace reference {

inline int32_t LoadCode(const uint8_t* codes, size_t index, uint32_t bits) {
  const size_t per_byte = 8 / bits;
  return (codes[index / per_byte] >> (index % per_byte * bits)) & ((1 << bits) - 1);
}

// Into bytes that were zero.
inline void AddCode(int32_t code, uint8_t* codes, size_t index, uint32_t bits) {
  const size_t per_byte = 8 / bits;
  codes[index / per_byte] |= static_cast<uint8_t>(code << (index % per_byte * bits));
}

}  // namespace reference
}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_PACK_H_
