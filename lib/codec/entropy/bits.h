// Strings of bits, first bit lowest, with numbers in exponential Golomb codes.
//
// One thread at a time. A reader never leaves its bytes: beyond them it reads zeros and remembers it.
#ifndef KVARTET_LIB_CODEC_ENTROPY_BITS_H_
#define KVARTET_LIB_CODEC_ENTROPY_BITS_H_

#include <algorithm>
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
    const auto width = static_cast<uint32_t>(std::bit_width(shifted >> order));
    const uint32_t ones = width > 0 ? width - 1 : 0, length = ones + order;
    Add((1u << ones) - 1, ones + 1);
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

  // At most 32.
  uint32_t Take(uint32_t bits) {
    const auto value = static_cast<uint32_t>(Peek() & ((uint64_t{1} << bits) - 1));
    return Skip(bits) ? value : 0;
  }
  uint32_t TakeGolomb(uint32_t order) {
    const uint64_t ahead = Peek();
    const auto ones = static_cast<uint32_t>(std::countr_one(ahead));
    const uint32_t length = order + ones;
    if (length > kLengthMax) {
      over_ = true;
      return 0;
    }
    const auto low = static_cast<uint32_t>(ahead >> (ones + 1) & ((uint64_t{1} << length) - 1));
    return Skip(ones + 1 + length) ? low + (1u << length) - (1u << order) : 0;
  }
  bool over() const { return over_; }
  // Whole bytes that were begun.
  size_t used() const { return (place_ + 7) / 8; }

 private:
  static constexpr uint32_t kLengthMax = 20;

  // The next bits, 57 of them at least; zeros beyond the end.
  uint64_t Peek() const {
    uint64_t word = 0;
    const size_t byte = std::min(place_ / 8, bytes_.size()), left = bytes_.size() - byte;
    if (left >= sizeof word) {
      word = LoadLe<uint64_t>(bytes_.data() + byte);
    } else if (left != 0) {
      std::memcpy(&word, bytes_.data() + byte, left);
    }
    return word >> place_ % 8;
  }
  bool Skip(uint32_t bits) {
    over_ = over_ || place_ + bits > 8 * bytes_.size();
    if (!over_) place_ += bits;
    return !over_;
  }

  Bytes bytes_;
  size_t place_ = 0;
  bool over_ = false;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_ENTROPY_BITS_H_
