// What the lossless codec's encoder and decoder share: how a segment is cut, and the order of the bytes of a
// plane. docs/lossless.md has the format.
//
// A segment is cut into chunks of tokens, each coded by itself, and a chunk into blocks. An item is what
// shares one table: a channel, or in a turned plane a sixteenth of the turn that RoPE gives a channel. Inside
// of a block the bytes of a plane come class after class, in a class item after item, in an item token after
// token. One thread at a time.
#ifndef KVARTET_LIB_CODEC_LOSSLESS_LAYOUT_H_
#define KVARTET_LIB_CODEC_LOSSLESS_LAYOUT_H_

#include <algorithm>
#include <vector>

#include "codec/segment_codec.h"
#include "common/planes.h"

namespace kvt::lossless {

inline constexpr uint32_t kClassesMax = 64;
inline constexpr uint32_t kBinsLog = 4, kBins = 1u << kBinsLog;
inline constexpr uint32_t kTurnsMax = 255;
inline constexpr uint64_t kChunkElements = 4u << 20, kBlockElements = 128u << 10;
inline constexpr uint64_t kBlockTokensMax = RowWindow::kRowsMax;
// Wider rows are stored as they are.
inline constexpr uint64_t kChannelsMax = 16384, kTurnedChannelsMax = 2048;

inline uint64_t ChunkTokens(uint64_t channels) {
  return std::clamp<uint64_t>(kChunkElements / std::max<uint64_t>(channels, 1), 1, 4096);
}
inline uint64_t BlockTokens(uint64_t channels) {
  return std::clamp<uint64_t>(kBlockElements / std::max<uint64_t>(channels, 1) / 16 * 16, 16,
                              kBlockTokensMax);
}

// f16 and fp8 keep their order: the top byte has sign, exponent and some of the mantissa. The exponents of
// bf16 and f32 fill a byte once the sign has moved to the other end.
inline kernels::PlaneShape PlanesOf(uint32_t element) {
  const size_t width = ElementBytes(element);
  return {width, element == KVT_ELEMENT_BF16 || element == KVT_ELEMENT_F32 ? 1 : 0};
}

// The turn of each channel, as an index into steps; 0: none.
struct Turns {
  std::vector<uint32_t> steps;  // of turn 1, 2, ..., in parts of 2^32 of a turn from one token to the next
  std::vector<uint8_t> of;      // channel c has turn of[c % of.size()]; not empty

  uint32_t Of(size_t channel) const { return of[channel % of.size()]; }
};

// The distinct turns of a shape's channels; none when there are too many.
Turns TurnsOf(const SegmentShape& shape);

// The tokens of a block in the order of their bins, for each turn.
class TurnOrder {
 public:
  // `first`: the block's first token, counted from the chunk's. What was sorted for the same turns and tokens
  // is kept.
  void Sort(const Turns& turns, uint64_t first, size_t tokens);
  size_t tokens() const { return tokens_; }
  // Of turn 1 and so on: kBins + 1 places into tokens(turn).
  const uint16_t* starts(uint32_t turn) const { return starts_.data() + (turn - 1) * (kBins + 1); }
  const uint16_t* tokens(uint32_t turn) const { return order_.data() + (turn - 1) * tokens_; }

 private:
  uint64_t first_ = 0;
  size_t tokens_ = 0;
  std::vector<uint32_t> steps_;
  std::vector<uint16_t> starts_, order_;
};

inline uint32_t BinOf(uint32_t step, uint64_t token) {
  return static_cast<uint32_t>(token) * step >> (32 - kBinsLog);
}

// The items of one plane of a chunk and where their bytes are in a block.
class PlaneItems {
 public:
  void Set(const Turns& turns, size_t channels, bool turned);
  size_t size() const { return channel_.size(); }
  size_t first(size_t channel) const { return first_[channel]; }
  size_t count(size_t channel) const { return first_[channel + 1] - first_[channel]; }

  // `classes[i]` of each item, below `count`; the last class is that of raw items. Sorts the items.
  void SetClasses(const uint8_t* classes, uint32_t count);
  bool raw(size_t item) const { return class_[item] + 1u == class_begin_.size() - 1; }

  // Sets the places of a block's items; returns how many bytes of class `k` come before it in `begins[k]`,
  // counted apart for coded and raw bytes.
  void Place(const Turns& turns, const TurnOrder& order, std::vector<uint64_t>* begins);
  // Where the item's bytes begin among the coded, or the raw, bytes of the block.
  uint64_t place(size_t item) const { return place_[item]; }

 private:
  uint64_t Tokens(const Turns& turns, const TurnOrder& order, size_t item) const;

  bool turned_ = false;
  std::vector<uint32_t> first_, sorted_, class_begin_;
  std::vector<uint16_t> channel_;
  std::vector<uint8_t> bin_, class_;
  std::vector<uint64_t> place_;
};

}  // namespace kvt::lossless

#endif  // KVARTET_LIB_CODEC_LOSSLESS_LAYOUT_H_
