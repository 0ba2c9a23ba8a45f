// How the demo cuts a prompt's KV into the frames of a stream, the same on both sides.
//
// The prefill of a chunk hides encoding, transfer and decoding of the chunk before it, which is one frame.
// Nothing hides those of the last chunk, so it goes in pieces: while one is on the wire, the next are encoded
// and the one before is decoded. Pure functions.
#ifndef KVARTET_TOOLS_KVARTET_STREAM_CUT_H_
#define KVARTET_TOOLS_KVARTET_STREAM_CUT_H_

#include <cstdint>
#include <span>
#include <vector>

namespace kvt::cli {

inline constexpr int32_t kPrefillChunk = 512;

// Part i of a prompt holds the tokens [begin, end) of prefill chunk i.
struct Part {
  int32_t begin = 0;
  int32_t end = 0;
};
std::vector<Part> Parts(int32_t prefix_tokens);

struct LayerRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};
// At most four ranges of much the same size that hold all layers in order, each of whole groups. `groups` are
// what a codec can put into a frame of its own; empty: any layer.
std::vector<LayerRange> CutLayers(uint32_t layers, std::span<const LayerRange> groups);

// What one frame of a stream holds.
struct Piece {
  size_t part = 0;  // index of the part that it is of
  int32_t token_begin = 0;
  int32_t token_end = 0;
  LayerRange layers;
  bool kept_raw = false;      // whatever the codec of the stream
  uint32_t exempt_first = 0;  // first tokens that a lossy codec keeps raw
};
// The frames of a stream. Kept raw: the prompt's first `sinks` and last `window` tokens. The latter need no
// computing, so they are a piece of their own and go ahead of what the last chunk has besides.
std::vector<Piece> CutStream(std::span<const Part> parts, std::span<const LayerRange> layers, uint32_t sinks,
                             uint32_t window);

// The index behind the last piece of the part that `pieces[first]` is of.
size_t EndOfPart(std::span<const Piece> pieces, size_t first);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_STREAM_CUT_H_
