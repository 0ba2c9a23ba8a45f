// Signed numbers of channels as coded bytes: planes of the lossless codec's chunks, whose channels share the
// tables that code them best. docs/frame-format.md has the bytes.
//
// One thread at a time. Decoding is safe on hostile bytes.
#ifndef KVARTET_LIB_CODEC_CACHEGEN_SYMBOLS_H_
#define KVARTET_LIB_CODEC_CACHEGEN_SYMBOLS_H_

#include <vector>

#include "codec/lossless/chunk.h"

namespace kvt::cachegen {

// Of -128 to 127: the top bit is the sign, as lossless's classes want it.
inline uint8_t SymbolOf(int32_t number) { return static_cast<uint8_t>(number >= 0 ? number : 127 - number); }
inline int32_t NumberOf(uint8_t symbol) { return symbol < 128 ? symbol : 127 - int32_t{symbol}; }

// `count` symbols of each channel lie at symbols + channel x count. Writes a u32 length and so many bytes, at
// most 4 + channels x count, and returns how many.
uint64_t EncodeSymbolPlane(const uint8_t* symbols, size_t count, size_t channels, uint8_t* to);

// The inverse; takes what it reads from the front of `stored`.
Status DecodeSymbolPlane(size_t count, size_t channels, Bytes* stored, lossless::ChunkDecoder* decoder,
                         std::vector<uint8_t>* symbols);

}  // namespace kvt::cachegen

#endif  // KVARTET_LIB_CODEC_CACHEGEN_SYMBOLS_H_
