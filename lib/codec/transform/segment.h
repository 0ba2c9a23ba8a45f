// FixedMode: the transform's codec `transform`: static bits for each component. A segment has the exempt
// tokens' rows, layer by layer; gains; codes, component by component; escapes. docs/transform.md describes
// the bytes.
//
// The mode is immutable, so thread-safe; one SegmentCoder a thread. Decoding is safe on hostile bytes.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_SEGMENT_H_
#define KVARTET_LIB_CODEC_TRANSFORM_SEGMENT_H_

#include <vector>

#include "codec/transform/group_rows.h"
#include "codec/transform/mode.h"
#include "codec/transform/plan.h"

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

class SegmentCoder final : public GroupCoder {
 public:
  SegmentCoder(const Plan& plan, const CodingJob& job)
      : plan_(plan), rows_(job.turns, job.rows, job.token_begin) {}

  uint64_t Encode(size_t group, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite) override;
  Status Decode(size_t group, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                uint32_t layer_end) override;

 private:
  struct Escape {
    uint32_t token;
    uint16_t component, half;
    float worth;  // squared error that it saves
  };

  void MeasureGains(const GroupPlan& group, size_t count, uint8_t* gains);
  void QuantizeTile(const GroupPlan& group, uint64_t coded, uint64_t token, size_t count, uint8_t* codes);
  void FindEscapes(const GroupPlan& group, size_t component, uint64_t token, size_t count);
  uint64_t WriteEscapes(uint64_t most, uint8_t* out);
  Status ReadEscapes(const GroupPlan& group, uint64_t coded, Bytes bytes);

  const Plan& plan_;
  GroupRows rows_;
  std::vector<float> tile_, values_, sums_, factors_;
  std::vector<uint8_t> codes_;
  std::vector<Escape> escapes_;
};

class FixedMode final : public TransformMode {
 public:
  explicit FixedMode(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  uint64_t StoredBytesMin(size_t group, const SegmentShape& shape) const override;
  uint64_t StoredBytesMax(size_t group, const SegmentShape& shape) const override;
  std::unique_ptr<GroupCoder> NewCoder(const CodingJob& job) const override;

 private:
  const std::shared_ptr<const Plan> plan_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_SEGMENT_H_
