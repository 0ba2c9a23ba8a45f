// Codes of 1 to 8 bits in a bit string, least significant bit first, from any bit on.
#ifndef KVARTET_KERNELS_COMMON_BOOK_BITS_H_
#define KVARTET_KERNELS_COMMON_BOOK_BITS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvt::kernels {

// Sets the bits of `count` codes in a string whose bits there are 0; touches no byte beyond the last code's.
inline void PackCodes(const uint8_t* codes, size_t count, uint32_t bits, uint8_t* string,
                      uint64_t first_bit) {
  uint8_t* to = string + first_bit / 8;
  uint32_t filled = first_bit % 8;
  uint64_t pending = 0;
  for (size_t i = 0; i < count; ++i) {
    pending |= uint64_t{codes[i]} << filled;
    filled += bits;
    if (filled >= 32) {
      uint32_t word;
      std::memcpy(&word, to, sizeof word);
      word |= static_cast<uint32_t>(pending);
      std::memcpy(to, &word, sizeof word);
      to += sizeof word;
      pending >>= 32;
      filled -= 32;
    }
  }
  for (; pending != 0; pending >>= 8) *to++ |= static_cast<uint8_t>(pending);
}

// The code at a bit; reads the byte there and the one behind it.
inline uint32_t CodeAt(const uint8_t* string, uint64_t bit, uint32_t bits) {
  uint16_t pair;
  std::memcpy(&pair, string + bit / 8, sizeof pair);
  return (pair >> (bit % 8)) & ((1u << bits) - 1);
}

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_BOOK_BITS_H_
