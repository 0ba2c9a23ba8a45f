// Interleaved range coding (rANS) of bytes with static tables: the tables, the coder and the scalar decoder
// that vector code is tested against. docs/lossless.md has the bytes.
//
// A stream is coded by S states (32, 64 or 128); symbol i of a run belongs to state i % S, and every run
// begins at state 0. A state is below 2^31 and, between symbols, at least 2^15. Frequencies of a table add up
// to 2^bits. Decoding a symbol takes the table's entry at the state's low bits, and when the state falls
// below 2^15 it takes the next 16-bit word. The encoder works backwards, so words are read in the order of
// symbols.
#ifndef KVARTET_KERNELS_COMMON_RANS_H_
#define KVARTET_KERNELS_COMMON_RANS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvt::kernels {

inline constexpr uint32_t kRansSymbols = 256;
inline constexpr uint32_t kRansBitsMin = 8, kRansBitsMax = 12;
inline constexpr uint32_t kRansStatesMin = 32, kRansStatesMax = 128;
inline constexpr uint32_t kRansLow = 1u << 15, kRansHigh = 1u << 31;
inline constexpr size_t kRansWordBytes = 2, kRansStateBytes = 4;

// One entry for each value of a state's low bits: the symbol in the top 8 bits, its frequency in the next 12,
// and the place inside of the symbol's interval in the last 12. So no frequency exceeds 4,095.
struct RansDecodeTable {
  uint32_t bits = 0;
  const uint32_t* entries = nullptr;  // 2^bits of them
};

inline uint32_t RansEntry(uint32_t symbol, uint32_t frequency, uint32_t place) {
  return symbol << 24 | frequency << 12 | place;
}

// What the coder needs of a symbol; division by the frequency is a multiplication, exact below 2^31.
struct RansCode {
  uint32_t limit = 0;  // a state from here on gives up a word first; 0: the symbol is not in the table
  uint32_t reciprocal = 0;
  uint32_t bias = 0;
  uint16_t complement = 0;  // 2^bits - frequency
  uint16_t shift = 0;
};

inline RansCode RansCodeOf(uint32_t start, uint32_t frequency, uint32_t bits) {
  if (frequency == 0) return {};
  RansCode code;
  code.limit = frequency << (31 - bits);
  code.complement = static_cast<uint16_t>((1u << bits) - frequency);
  if (frequency == 1) {
    // The quotient by 1 comes out one too small; the bias makes up for it.
    code.reciprocal = UINT32_MAX;
    code.bias = start + (1u << bits) - 1;
    return code;
  }
  uint32_t log = 0;
  while (frequency > (1u << log)) ++log;
  code.reciprocal = static_cast<uint32_t>(((uint64_t{1} << (log + 31)) + frequency - 1) / frequency);
  code.shift = static_cast<uint16_t>(log - 1);
  code.bias = start;
  return code;
}

// The coder: runs are given last to first, and each run is coded last symbol to first. Words go down from the
// end of the memory; the caller has room for a word for each symbol and for the states.
class RansEncoder {
 public:
  RansEncoder(uint32_t states, uint8_t* end) : states_(states), next_(end) {
    for (uint32_t& x : x_) x = kRansLow;
  }

  // Every symbol is in the table.
  void Add(const RansCode codes[kRansSymbols], const uint8_t* symbols, size_t count) {
    const size_t mask = states_ - 1;
    for (size_t i = count; i-- > 0;) AddOne(codes[symbols[i]], i & mask);
  }

  // One symbol, by the state that is given.
  void AddOne(const RansCode& code, size_t state) {
    uint32_t x = x_[state];
    const auto word = static_cast<uint16_t>(x);
    std::memcpy(next_ - kRansWordBytes, &word, sizeof word);
    const uint32_t full = x >= code.limit ? 1 : 0;
    next_ -= full * kRansWordBytes;
    x >>= full * 16;
    const auto quotient = static_cast<uint32_t>((uint64_t{x} * code.reciprocal >> 32) >> code.shift);
    x_[state] = x + code.bias + quotient * code.complement;
  }

  // Writes the states before the words; returns the stream's first byte.
  uint8_t* Finish() {
    next_ -= states_ * kRansStateBytes;
    std::memcpy(next_, x_, states_ * kRansStateBytes);
    return next_;
  }

 private:
  const uint32_t states_;
  uint8_t* next_;
  uint32_t x_[kRansStatesMax];
};

// A stream while it is decoded. Words are read only while there are some: `missing` counts what a hostile or
// cut stream lacks, for which zeros are taken.
struct RansStream {
  uint32_t states = 0;
  uint32_t x[kRansStatesMax];
  const uint8_t* next = nullptr;
  size_t words = 0;  // that are left
  bool missing = false;
};

// False when the bytes are too few, not whole words, or hold a state that is out of range.
inline bool RansOpen(const uint8_t* bytes, size_t size, uint32_t states, RansStream* stream) {
  const size_t front = states * kRansStateBytes;
  if (size < front || (size - front) % kRansWordBytes != 0) return false;
  stream->states = states;
  std::memcpy(stream->x, bytes, front);
  for (uint32_t s = 0; s < states; ++s)
    if (stream->x[s] < kRansLow || stream->x[s] >= kRansHigh) return false;
  stream->next = bytes + front;
  stream->words = (size - front) / kRansWordBytes;
  stream->missing = false;
  return true;
}

// Whether exactly the stream was used up and its states are those that the coder began with.
inline bool RansAtEnd(const RansStream& stream) {
  if (stream.words != 0 || stream.missing) return false;
  for (uint32_t s = 0; s < stream.states; ++s)
    if (stream.x[s] != kRansLow) return false;
  return true;
}

// The next symbol, of 2^bits entries, by the state that is given.
inline uint32_t RansNext(const uint32_t* entries, uint32_t bits, RansStream* stream, size_t index) {
  const uint32_t state = stream->x[index];
  const uint32_t entry = entries[state & ((1u << bits) - 1)];
  uint32_t x = (entry >> 12 & 0xfff) * (state >> bits) + (entry & 0xfff);
  if (x < kRansLow) {
    uint16_t word = 0;
    if (stream->words != 0) {
      std::memcpy(&word, stream->next, sizeof word);
      stream->next += kRansWordBytes;
      --stream->words;
    } else {
      stream->missing = true;
    }
    x = x << 16 | word;
  }
  stream->x[index] = x;
  return entry >> 24;
}

namespace reference {

// Fills 2^bits entries; the frequencies add up to 2^bits and none exceeds 4,095.
inline void RansFillEntries(const uint16_t frequencies[kRansSymbols], uint32_t* entries) {
  for (uint32_t symbol = 0; symbol < kRansSymbols; ++symbol)
    for (uint32_t place = 0; place < frequencies[symbol]; ++place)
      *entries++ = RansEntry(symbol, frequencies[symbol], place);
}

// Symbols of one run from symbol `first` on, whose state is `first` % states. Any state below 2^31 stays
// below it: frequency x (state >> bits) + place < 2^bits x 2^(31 - bits), as an entry's place is below its
// frequency and its frequency at most 2^bits; and a state below 2^15 takes 16 bits more.
inline void RansDecode(const RansDecodeTable& table, RansStream* stream, size_t first, uint8_t* out,
                       size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const size_t state = (first + i) & (stream->states - 1);
    out[i] = static_cast<uint8_t>(RansNext(table.entries, table.bits, stream, state));
  }
}

}  // namespace reference
}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_COMMON_RANS_H_
