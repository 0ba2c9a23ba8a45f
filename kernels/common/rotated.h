// rotated: each head's row is turned by a fixed random rotation, after which its elements look alike and
// normal, and takes the nearest Lloyd-Max levels of a normal distribution (TurboQuant, arXiv 2504.19874, with
// a Hadamard matrix as rotation and without the stage for inner products). This is the scalar reference.
//
// The rotation cuts the row into blocks, as long as the binary digits of `dim` from the highest on, negates
// elements by a fixed random sequence, and applies the Hadamard matrix to each block. Codes are indices of
// levels by rising value. A block's scale is its norm over that of its levels: decoding restores the norm.
// The record of a token: each head's f16 scales, one a block; then each head's codes, which begin at a byte.
// Codes of 3 bits are packed in two planes, the lower two bits of all, then the highest bit of all.
//
// Levels are integers below 128 and a row has at most 8192 elements, so sums of levels are exact in float in
// any order; the norm is summed in double, where squares are exact, in a fixed order. So every instruction
// set gives the same bytes and the same values.
#ifndef KVARTET_KERNELS_COMMON_ROTATED_H_
#define KVARTET_KERNELS_COMMON_ROTATED_H_

#include <algorithm>
#include <array>
#include <bit>

#include "common/lossy.h"
#include "common/pack.h"

namespace kvt::kernels {

inline constexpr size_t kRotatedDimMax = 8192;

// The positive half of a book of 2^bits levels, in units of the normal distribution's deviation over `unit`.
struct RotatedBook {
  double unit;
  std::array<int8_t, 8> positive;
};
inline constexpr RotatedBook kRotatedBooks[] = {
    {53, {24, 80}}, {53, {13, 40, 71, 114}}, {38.125, {5, 15, 25, 36, 48, 62, 79, 104}}};  // of 2, 3, 4

// All levels by rising value, then zeros.
using RotatedLevels = std::array<int8_t, 16>;
inline constexpr RotatedLevels LevelsOf(uint32_t bits) {
  const size_t half = size_t{1} << (bits - 1);
  RotatedLevels levels{};
  for (size_t i = 0; i < half; ++i) {
    levels[half + i] = kRotatedBooks[bits - 2].positive[i];
    levels[half - 1 - i] = static_cast<int8_t>(-levels[half + i]);
  }
  return levels;
}
// The bound between level k and the next.
inline float RotatedBound(const RotatedLevels& levels, size_t k) {
  return static_cast<float>(levels[k] + levels[k + 1]) * 0.5f;
}

// Bit e is set where element e of a row is negated: the highest bit of the e-th number (from 0) of SplitMix64
// with seed 0.
using RotatedSigns = std::array<uint64_t, kRotatedDimMax / 64>;
inline constexpr RotatedSigns MakeRotatedSigns() {
  RotatedSigns signs{};
  uint64_t state = 0;
  for (size_t e = 0; e < kRotatedDimMax; ++e) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    signs[e / 64] |= (z ^ (z >> 31)) >> 63 << (e % 64);
  }
  return signs;
}
inline constexpr RotatedSigns kRotatedSigns = MakeRotatedSigns();

// The sign bit of a float that negates element e, or 0.
inline uint32_t RotatedSign(size_t e) {
  return static_cast<uint32_t>(kRotatedSigns[e / 64] >> (e % 64) & 1u) << 31;
}
inline float FlipSign(float value, uint32_t sign) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ sign);
}

inline size_t RotatedBlocks(size_t dim) { return static_cast<size_t>(std::popcount(dim)); }
inline size_t RotatedCodeBytes(size_t dim, uint32_t bits) {
  return bits == 3 ? CodeBytes(dim, 2) + CodeBytes(dim, 1) : CodeBytes(dim, bits);
}
inline size_t RotatedRecordBytes(size_t heads, size_t dim, uint32_t bits) {
  return heads * (RotatedBlocks(dim) * sizeof(uint16_t) + RotatedCodeBytes(dim, bits));
}
// Calls body(index, begin, size) for each block of a row.
template <typename Body>
inline void ForRotatedBlocks(size_t dim, const Body& body) {
  size_t begin = 0, index = 0;
  for (size_t size = std::bit_floor(dim); size != 0; size /= 2) {
    if ((dim & size) == 0) continue;
    body(index++, begin, size);
    begin += size;
  }
}

// What a block's sums of levels are multiplied with, times its scale.
inline float RotatedUnit(size_t size, uint32_t bits) {
  return static_cast<float>(1 / (kRotatedBooks[bits - 2].unit * std::sqrt(static_cast<double>(size))));
}

// The squares of a turned block, added up in eight lanes.
inline double SumOfSquares(const float* values, size_t size) {
  std::array<double, 8> lanes{};
  for (size_t i = 0; i < size; ++i) {
    const double value = values[i];
    lanes[i % 8] += value * value;
  }
  for (size_t half = 4; half != 0; half /= 2)
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// What a turned block is multiplied with before its levels are chosen; 0 for blocks that f16 scales cannot
// tell from zero. `squares` is the sum of the block's squares.
inline float RotatedGain(double squares, size_t size, uint32_t bits) {
  const double mean = squares / static_cast<double>(size);
  const double deviation = std::sqrt(mean);
  // The matrix has entries of 1, so the block is longer than its row by the root of its size.
  if (deviation < 0x1p-25 * std::sqrt(static_cast<double>(size))) return 0;
  return static_cast<float>(kRotatedBooks[bits - 2].unit / deviation);
}

// The f16 scale of a block; `levels` is the sum of its levels' squares.
inline uint16_t RotatedScale(double squares, int64_t levels, size_t size, uint32_t bits) {
  const double ratio = squares / (static_cast<double>(size) * static_cast<double>(levels));
  return F32ToF16(Clamp(static_cast<float>(kRotatedBooks[bits - 2].unit * std::sqrt(ratio))));
}

namespace reference {

// The Hadamard matrix of order `size` times a block, in place.
inline void Hadamard(float* values, size_t size) {
  for (size_t half = 1; half < size; half *= 2) {
    for (size_t begin = 0; begin < size; begin += 2 * half) {
      for (size_t i = begin; i < begin + half; ++i) {
        const float a = values[i], b = values[i + half];
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
}

// The levels of a turned block, one code a byte; returns its scale.
inline uint16_t RotatedChoose(const float* values, size_t size, uint32_t bits, uint8_t* codes) {
  const RotatedLevels levels = LevelsOf(bits);
  const double squares = SumOfSquares(values, size);
  const float gain = RotatedGain(squares, size, bits);
  if (gain == 0) {
    std::memset(codes, 0, size);
    return 0;
  }
  int64_t sum = 0;
  for (size_t i = 0; i < size; ++i) {
    const float value = values[i] * gain;
    codes[i] = 0;
    for (size_t k = 0; k + 1 < size_t{1} << bits; ++k) codes[i] += value > RotatedBound(levels, k);
    sum += levels[codes[i]] * levels[codes[i]];
  }
  return RotatedScale(squares, sum, size, bits);
}

inline void RotatedPack(const uint8_t* codes, size_t dim, uint32_t bits, uint8_t* packed) {
  std::memset(packed, 0, RotatedCodeBytes(dim, bits));
  for (size_t e = 0; e < dim; ++e) {
    if (bits == 3) {
      AddCode(codes[e] & 3, packed, e, 2);
      AddCode(codes[e] >> 2, packed + CodeBytes(dim, 2), e, 1);
    } else {
      AddCode(codes[e], packed, e, bits);
    }
  }
}

inline int32_t RotatedCode(const uint8_t* packed, size_t dim, uint32_t bits, size_t e) {
  if (bits != 3) return LoadCode(packed, e, bits);
  return LoadCode(packed, e, 2) | LoadCode(packed + CodeBytes(dim, 2), e, 1) << 2;
}

inline void RotatedEncode(Element element, uint32_t bits, const void* const* rows, size_t count, size_t heads,
                          size_t dim, uint8_t* out, uint64_t* nonfinite) {
  float values[kRotatedDimMax];
  uint8_t codes[kRotatedDimMax];
  const size_t blocks = RotatedBlocks(dim);
  for (size_t r = 0; r < count; ++r, out += RotatedRecordBytes(heads, dim, bits)) {
    uint8_t* packed = out + heads * blocks * sizeof(uint16_t);
    for (size_t h = 0; h < heads; ++h, packed += RotatedCodeBytes(dim, bits)) {
      for (size_t e = 0; e < dim; ++e) {
        const float value = Admit(LoadElement(element, rows[r], h * dim + e), nonfinite);
        values[e] = FlipSign(value, RotatedSign(e));
      }
      ForRotatedBlocks(dim, [&](size_t index, size_t begin, size_t size) {
        Hadamard(values + begin, size);
        StoreHalf(RotatedChoose(values + begin, size, bits, codes + begin), out, h * blocks + index);
      });
      RotatedPack(codes, dim, bits, packed);
    }
  }
}

inline void RotatedDecode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads,
                          size_t dim, void* const* rows) {
  float values[kRotatedDimMax];
  const RotatedLevels levels = LevelsOf(bits);
  const size_t blocks = RotatedBlocks(dim);
  for (size_t r = 0; r < count; ++r, in += RotatedRecordBytes(heads, dim, bits)) {
    const uint8_t* packed = in + heads * blocks * sizeof(uint16_t);
    for (size_t h = 0; h < heads; ++h, packed += RotatedCodeBytes(dim, bits)) {
      for (size_t e = 0; e < dim; ++e) values[e] = levels[RotatedCode(packed, dim, bits, e)];
      ForRotatedBlocks(dim, [&](size_t index, size_t begin, size_t size) {
        Hadamard(values + begin, size);
        const float factor = LoadScale(in, h * blocks + index) * RotatedUnit(size, bits);
        for (size_t e = begin; e < begin + size; ++e) {
          const float value = FlipSign(values[e] * factor, RotatedSign(e));
          StoreElement(element, Clamp(value), rows[r], h * dim + e);
        }
      });
    }
  }
}

}  // namespace reference
}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_ROTATED_H_
