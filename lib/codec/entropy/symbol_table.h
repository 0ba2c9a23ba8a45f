// SymbolTable: static frequencies of bytes for range coding, made from counts or read from bytes.
//
// Frequencies are rounded to quarters of an octave, which costs under 0.003 bits a symbol and makes a table
// small: it is a level for each symbol, from which both sides compute the same frequencies.
// docs/lossless.md has the bytes. Invariant: frequencies add up to 2^bits (8 to 12), none exceeds 4,095,
// and at least two symbols have one. A table with an escape codes what it has no frequency for, and the
// escape's own symbol, as the escape, whose byte follows apart. Immutable, so thread-safe.
#ifndef KVARTET_LIB_CODEC_ENTROPY_SYMBOL_TABLE_H_
#define KVARTET_LIB_CODEC_ENTROPY_SYMBOL_TABLE_H_

#include <array>

#include "base/status.h"
#include "codec/entropy/bits.h"
#include "cpu/rans.h"

namespace kvt {

using SymbolCounts = std::array<uint64_t, kernels::kRansSymbols>;

class SymbolTable {
 public:
  static constexpr uint32_t kNoEscape = kernels::kRansSymbols;
  // Costs are in parts of a bit.
  static constexpr uint32_t kCostUnit = 64;

  // Of counts below 2^40, not all of them 0. `escapes`: what was not counted can be coded all the same.
  static SymbolTable Of(const SymbolCounts& counts, uint32_t bits, bool escapes);
  // KVT_ERR_CORRUPT that names the field.
  static StatusOr<SymbolTable> Read(BitReader* in);
  void Write(BitWriter* out) const;

  uint32_t bits() const { return bits_; }
  // kNoEscape: none.
  uint32_t escape() const { return escape_; }
  uint32_t frequency(uint32_t symbol) const { return frequencies_[symbol]; }
  // Whether the symbol is coded as itself.
  bool Holds(uint32_t symbol) const { return frequencies_[symbol] != 0 && symbol != escape_; }
  // What coding the symbol costs; more than any that has a frequency for one that has none.
  uint32_t Cost(uint32_t symbol) const;

  void FillEntries(uint32_t* entries) const { kernels::RansFillEntries(frequencies_.data(), bits_, entries); }
  void FillCodes(kernels::RansCode codes[kernels::kRansSymbols]) const;

 private:
  // Sets the frequencies from the levels, of which at least one is not 0.
  void Settle();

  uint32_t bits_ = 0, escape_ = kNoEscape;
  std::array<uint8_t, kernels::kRansSymbols> levels_{};  // 0: the symbol does not occur
  std::array<uint16_t, kernels::kRansSymbols> frequencies_{};
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_ENTROPY_SYMBOL_TABLE_H_
