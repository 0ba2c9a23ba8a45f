// DenseCoder: a segment of the dense mode. docs/dense.md describes the bytes: a front, exempt tokens, gains
// and importance, then blocks of up to 512 tokens.
//
// One thread at a time. Decoding is safe on hostile bytes.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_DENSE_SEGMENT_H_
#define KVARTET_LIB_CODEC_TRANSFORM_DENSE_SEGMENT_H_

#include <span>
#include <vector>

#include "codec/transform/dense.h"
#include "codec/transform/dense_walk.h"
#include "codec/transform/group_rows.h"

namespace kvt {

class DenseCoder final : public GroupCoder {
 public:
  static constexpr uint64_t kFrontBytes = 4;

  DenseCoder(const DenseMode& mode, const CodingJob& job)
      : mode_(mode), importance_(job.importance), rows_(job.turns, job.rows, job.token_begin) {}

  uint64_t Encode(size_t group, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite) override;
  Status Decode(size_t group, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                uint32_t layer_end) override;

 private:
  // Which tokens of a frame are kept how.
  struct Split {
    Split(const SegmentShape& shape, Exempt exempt);
    uint64_t kept_first = 0, kept_last = 0;  // as raw rows or bytes
    uint64_t coded = 0, fine = 0;            // of the coded ones, the last that have a finer step
  };
  // Components and classes of a group at a step.
  void Plan(size_t group, int32_t step);

  void EncodeExempt(const ProfileGroup& group, const SegmentShape& shape, const Split& split,
                    uint64_t* nonfinite);
  Status DecodeExempt(const ProfileGroup& group, const SegmentShape& shape, const Split& split, Exempt exempt,
                      uint32_t layer_begin, uint32_t layer_end, Bytes* in);
  void SetTokens(const SegmentShape& shape, const Split& split);
  // Measures the gains of a block's tokens and codes them.
  void EncodeBlock(size_t group, const SegmentShape& shape, uint64_t token, size_t count,
                   uint64_t* nonfinite);
  void AppendBlock(size_t count);
  // One number of each token, as bytes.
  void AppendNumbers(int8_t DenseWalk::Token::*number, int32_t zero, const Split& split);
  Status ReadNumbers(int8_t DenseWalk::Token::*number, int32_t zero, int32_t least, int32_t most,
                     const Split& split, Bytes* in);
  Status DecodeBlock(Quantiser quantiser, std::span<const DenseWalk::Token> tokens, Bytes* in);
  Status DecodeStream(Quantiser quantiser, std::span<const DenseWalk::Token> tokens, Bytes literals,
                      Bytes stream);
  // All rows as they are, for what would get longer.
  uint64_t StoreRaw(const ProfileGroup& group, const SegmentShape& shape, uint8_t* out);
  Status LoadRaw(const ProfileGroup& group, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                 uint32_t layer_end);

  const DenseMode& mode_;
  const int8_t* importance_;
  GroupRows rows_;
  int32_t step_ = 0;
  std::vector<int32_t> classes_;          // by kept component
  std::vector<DenseWalk::Token> tokens_;  // all that are coded
  DenseWalk walk_;
  std::vector<float> tile_, values_, scratch_;
  std::vector<uint8_t> bytes_, words_, blocks_, out_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_DENSE_SEGMENT_H_
