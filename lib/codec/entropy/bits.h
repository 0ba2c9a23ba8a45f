// Strings of bits, first bit lowest, with numbers in exponential Golomb codes.
//
// One thread at a time. A reader never leaves its bytes: beyond them it reads zeros and remembers it.
#ifndef KVARTET_LIB_CODEC_ENTROPY_BITS_H_
#define KVARTET_LIB_CODEC_ENTROPY_BITS_H_

#include <bit>
#include <vector>

#include "base/bytes.h"

namespace kvt {

class BitWriter {
 public:
  void Add(uint32_t value, uint32_t bits) {
    for (uint32_t i = 0; i < bits; ++i, ++count_) {
      if (count_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<uint8_t>(bytes_.back() | (value >> i & 1) << count_ % 8);
    }
  }
  // n ones, a zero, n + order low bits; value below 2^20.
  void AddGolomb(uint32_t value, uint32_t order) {
    const uint32_t shifted = value + (1u << order);
    const uint32_t length = static_cast<uint32_t>(std::bit_width(shifted)) - 1;
    Add((1u << (length - order)) - 1, length - order + 1);
    Add(shifted - (1u << length), length);
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  size_t count_ = 0;
};

class BitReader {
 public:
  explicit BitReader(Bytes bytes) : bytes_(bytes) {}

  uint32_t Take(uint32_t bits) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < bits; ++i, ++place_) {
      if (place_ / 8 >= bytes_.size()) {
        over_ = true;
        return 0;
      }
      value |= (uint32_t{bytes_[place_ / 8]} >> place_ % 8 & 1) << i;
    }
    return value;
  }
  uint32_t TakeGolomb(uint32_t order) {
    uint32_t length = order;
    while (length < kLengthMax && Take(1) != 0) ++length;
    if (length == kLengthMax) over_ = true;
    if (over_) return 0;
    return Take(length) + (1u << length) - (1u << order);
  }
  bool over() const { return over_; }
  // Whole bytes that were begun.
  size_t used() const { return (place_ + 7) / 8; }

 private:
  static constexpr uint32_t kLengthMax = 20;
  Bytes bytes_;
  size_t place_ = 0;
  bool over_ = false;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_ENTROPY_BITS_H_
