// A segment of the transform codec: one stream of one group of layers. docs/transform.md describes the bytes:
// the exempt tokens' rows, layer by layer; gains; codes, component by component; escapes.
//
// One SegmentCoder a thread; the plan it works by is shared. Decoding is safe on hostile bytes.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_SEGMENT_H_
#define KVARTET_LIB_CODEC_TRANSFORM_SEGMENT_H_

#include <vector>

#include "codec/frame_header.h"
#include "codec/rows.h"
#include "codec/segment_codec.h"
#include "codec/transform/plan.h"
#include "codec/transform/turn_table.h"

namespace kvt {

// Where a segment's parts are, and their lengths, but for the escapes.
struct SegmentLayout {
  SegmentLayout(const GroupPlan& plan, const SegmentShape& shape);

  uint64_t exempt_layer_bytes = 0;                               // of one layer
  uint64_t gains = 0, codes = 0, escape_count = 0, escapes = 0;  // offsets

  static constexpr uint64_t kEscapeBytes = 8;
  // Components differ in how well a normal token tells of them; more than this is not told.
  static uint64_t EscapesMax(const GroupPlan& plan, const SegmentShape& shape);
  uint64_t BytesMax(const GroupPlan& plan, const SegmentShape& shape) const {
    return escapes + kEscapeBytes * EscapesMax(plan, shape);
  }
};

class SegmentCoder {
 public:
  // All outlive the coder; `turns` has the coded tokens' rotations.
  SegmentCoder(const Plan& plan, const TurnTable& turns, RowWindow* rows, uint64_t token_begin)
      : plan_(plan), turns_(turns), rows_(*rows), token_begin_(token_begin) {}

  // Writes at most SegmentLayout::BytesMax bytes and returns how many; adds the NaN and infinities met.
  uint64_t Encode(const GroupPlan& group, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite);

  // Decodes layers [layer_begin, layer_end) of the group. `stored` has its checksum already.
  Status Decode(const GroupPlan& group, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                uint32_t layer_end);

 private:
  struct Escape {
    uint32_t token;
    uint16_t component, half;
    float worth;  // squared error that it saves
  };

  void LoadTile(const GroupPlan& group, const SegmentShape& shape, uint64_t token, size_t count,
                uint64_t* nonfinite);
  void StoreTile(const GroupPlan& group, const SegmentShape& shape, uint64_t token, size_t count,
                 uint32_t layer_begin, uint32_t layer_end);
  void MeasureGains(const GroupPlan& group, size_t count, uint8_t* gains);
  void QuantizeTile(const GroupPlan& group, uint64_t coded, uint64_t token, size_t count, uint8_t* codes);
  void FindEscapes(const GroupPlan& group, size_t component, uint64_t token, size_t count);
  uint64_t WriteEscapes(uint64_t most, uint8_t* out);
  Status ReadEscapes(const GroupPlan& group, uint64_t coded, Bytes bytes);

  const Plan& plan_;
  const TurnTable& turns_;
  RowWindow& rows_;
  const uint64_t token_begin_;
  std::vector<float> tile_, values_, sums_, factors_;
  std::vector<uint8_t> codes_;
  std::vector<Escape> escapes_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_SEGMENT_H_
