// DenseTables: the calibrated tables of the dense mode in the form that encoding and decoding read.
//
// A symbol's table follows from its component's scale, the frame's step and the token's importance, which
// make a class, and from the trellis's quantiser. Immutable, so thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_DENSE_TABLES_H_
#define KVARTET_LIB_CODEC_TRANSFORM_DENSE_TABLES_H_

#include <vector>

#include "codec/profile.h"
#include "codec/transform/steps.h"
#include "common/rans.h"
#include "common/trellis.h"

namespace kvt {

// The class of a component of scale `scale` at a frame's step, both in sixteenths, for importance 0; a
// token's importance is subtracted.
inline int32_t ClassOf(int32_t scale, int32_t step) { return ((scale - step + 2) >> 2) + 16; }

inline uint32_t TableOf(int32_t class_of_component, int32_t importance) {
  return 2 *
         static_cast<uint32_t>(std::clamp<int32_t>(class_of_component - importance, 0, kDenseClasses - 1));
}

// k as a symbol: 0, -1, 1, -2, 2 and so on. Magnitudes from kDenseSymbolMost on are always escapes.
inline constexpr int32_t kDenseSymbolMost = 127;
inline uint32_t FoldCode(int32_t code) {
  return code < 0 ? 2 * static_cast<uint32_t>(-code) - 1 : 2 * static_cast<uint32_t>(code);
}
inline int32_t UnfoldCode(uint32_t symbol) {
  return symbol % 2 == 1 ? -static_cast<int32_t>(symbol / 2) - 1 : static_cast<int32_t>(symbol / 2);
}

class DenseTables {
 public:
  // Steps squared that a bit is worth in the trellis.
  static constexpr float kBitPrice = 0.25f;

  explicit DenseTables(const DenseFacts& facts);

  kernels::TrellisContext context() const { return {prices_.data(), centres_.data()}; }
  const SymbolTable& table(uint32_t index) const { return tables_[index]; }
  // Whether k has a symbol in a table; else it is an escape.
  bool Holds(uint32_t table, int32_t code) const {
    return std::abs(code) < kDenseSymbolMost && tables_[table].Holds(FoldCode(code));
  }
  const kernels::RansCode* codes(uint32_t table) const {
    return codes_.data() + size_t{table} * kernels::kRansSymbols;
  }
  const uint32_t* entries(uint32_t table) const { return entries_.data() + (size_t{table} << kDenseBits); }
  // What k costs in a table, in bits, with what an escape takes.
  float Bits(uint32_t table, int32_t code) const;

 private:
  std::vector<SymbolTable> tables_;
  std::vector<float> prices_, centres_;
  std::vector<kernels::RansCode> codes_;
  std::vector<uint32_t> entries_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_DENSE_TABLES_H_
