// Bytes to fewer bytes by range coding with one static table, and back; stored as they are where that is
// less. Codecs with many tables use kernels/common/rans.h and SymbolTable directly.
//
//   u8   kind: 0 stored, 1 coded with tables that follow, one for each 8,192 symbols, 2 coded with a table
//   that the
//        reader has; + 16 x (0, 1 or 2 for 32, 64 or 128 states)
//   kind 0: the symbols
//   kinds 1 and 2: u32 n, n bytes with the tables' bits (kind 2: none); u32 n, n bytes that took an escape,
//   in order;
//        then the states and words of the stream
//
// Stateless and thread-safe. Decoding is safe on hostile bytes: it writes the output that was asked for and
// nothing else, and accepts only bytes that end where their symbols do.
#ifndef KVARTET_LIB_CODEC_ENTROPY_ENTROPY_H_
#define KVARTET_LIB_CODEC_ENTROPY_ENTROPY_H_

#include "base/bytes.h"
#include "codec/entropy/symbol_table.h"

namespace kvt {

// States for a stream of so many symbols: many make decoding fast, and each costs four bytes.
uint32_t StatesFor(uint64_t symbols);

inline uint64_t EntropyBound(uint64_t symbols) { return symbols + 1; }

// Writes at most EntropyBound bytes to the front of `out`, which has as many, and returns how many. `shared`:
// a table that the reader has too, or null; it has an escape.
uint64_t EncodeSymbols(Bytes symbols, const SymbolTable* shared, MutableBytes out);

// Fills `out`, whose length the caller knows. KVT_ERR_CORRUPT.
Status DecodeSymbols(Bytes coded, const SymbolTable* shared, MutableBytes out);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_ENTROPY_ENTROPY_H_
