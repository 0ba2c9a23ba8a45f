// GroupRows: rows of a group of layers to and from tiles: a row a token, all layers and heads one after
// another, RoPE undone, the mean removed, in the profile's metric.
//
// One thread at a time.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_GROUP_ROWS_H_
#define KVARTET_LIB_CODEC_TRANSFORM_GROUP_ROWS_H_

#include <vector>

#include "codec/profile.h"
#include "codec/rows.h"
#include "codec/segment_codec.h"
#include "codec/transform/turn_table.h"

namespace kvt {

class GroupRows {
 public:
  // `turns` are those of the frame's tokens from the first that is not exempt on; both outlive this.
  GroupRows(const TurnTable& turns, RowWindow* rows, uint64_t token_begin)
      : turns_(turns), rows_(*rows), token_begin_(token_begin) {}

  // Selects a layer's rows; tokens then count from the frame's token `first`.
  RowWindow& Select(uint32_t layer, uint32_t stream, uint64_t first = 0) {
    rows_.Select(layer, stream, token_begin_ + first);
    return rows_;
  }

  // Tokens [token, token + count), counted from the first that is not exempt, into count x width floats; adds
  // the NaN and infinities met.
  void Load(const ProfileGroup& group, const SegmentShape& shape, uint64_t token, size_t count, float* tile,
            uint64_t* nonfinite);
  // Back from a tile that has the layers [layer_begin, layer_end) of the group; the tile is overwritten.
  void Store(const ProfileGroup& group, const SegmentShape& shape, uint64_t token, size_t count,
             uint32_t layer_begin, uint32_t layer_end, float* tile);

 private:
  // Multiplies each head's vectors of one layer by the matrix of (layer, head), in place.
  void Apply(const std::vector<float>& matrices, size_t layer, const SegmentShape& shape, size_t count,
             size_t stride, float* tile);

  const TurnTable& turns_;
  RowWindow& rows_;
  const uint64_t token_begin_;
  std::vector<float> head_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_GROUP_ROWS_H_
