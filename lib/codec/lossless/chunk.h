// Chunks of the lossless codec: planes of bytes to coded bytes and back. docs/lossless.md has the bytes.
//
// One thread at a time. Decoding is safe on hostile bytes: every length is checked before it is used, and
// planes are read only where they have been written.
#ifndef KVARTET_LIB_CODEC_LOSSLESS_CHUNK_H_
#define KVARTET_LIB_CODEC_LOSSLESS_CHUNK_H_

#include "codec/entropy/symbol_table.h"
#include "codec/lossless/classes.h"
#include "codec/lossless/layout.h"

namespace kvt::lossless {

struct ChunkShape {
  kernels::PlaneShape planes;
  size_t tokens = 0, channels = 0;
};

// Codes what lies at planes[p x channels + c], `tokens` bytes each, which may come out longer than it went
// in. `turns`: what RoPE does to the channels, if anything.
std::vector<uint8_t> EncodeChunk(const ChunkShape& shape, const std::vector<const uint8_t*>& planes,
                                 const Turns& turns);

class ChunkDecoder {
 public:
  // Reads all but the planes. The bytes stay where they are. KVT_ERR_CORRUPT.
  Status Open(const ChunkShape& shape, Bytes coded);
  // Decodes the next block of `tokens`: what JoinPlanes reads is then at planes()[p x channels + c].
  Status Next(size_t tokens);
  const uint8_t* const* planes() const { return pointers_.data(); }
  // After the last block. KVT_ERR_CORRUPT when something is left.
  Status Close() const;

 private:
  struct Plane {
    PlaneItems items;
    bool turned = false;
    uint32_t classes = 0;           // 0: all bytes of the plane are raw
    std::vector<uint32_t> entries;  // of the tables of all classes, one after another
    std::vector<kernels::RansDecodeTable> tables;
    SymbolTable numbers;
    uint8_t* coded = nullptr;     // of a block, in the order of the stream
    uint8_t* straight = nullptr;  // of channels with turns, in the order of tokens
  };

  Status ReadTurns(Bytes* coded);
  Status ReadTables(Bytes* coded);
  Status ReadClasses();
  Status NextPlane(const TurnOrder& order, size_t number, size_t tokens);
  void Straighten(const TurnOrder& order, const Plane& plane, size_t channel, const uint8_t* raw,
                  uint8_t* to) const;

  ChunkShape shape_;
  Turns turns_;
  std::vector<TurnOrder> orders_;  // of each block; segments of a frame have the same
  uint64_t done_ = 0;
  std::vector<Plane> planes_{kernels::kPlanesMax};
  kernels::RansStream stream_;
  Bytes raw_;
  std::vector<uint8_t> work_;
  std::vector<uint8_t> numbers_;
  std::vector<uint64_t> begins_;
  std::vector<const uint8_t*> pointers_;
};

}  // namespace kvt::lossless

#endif  // KVARTET_LIB_CODEC_LOSSLESS_CHUNK_H_
