// KvtcMode: the transform's codec `kvtc`, KVTC (arXiv 2511.01815) as published: blocks of components with a
// shift and a scale for each token, integers of 2 or 4 bits or fp8, then DEFLATE. docs/kvtc.md describes the
// bytes.
//
// The mode is immutable, so thread-safe; one KvtcCoder a thread. Decoding is safe on hostile bytes: a segment
// says its own blocks, and every length is checked before it is used.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_KVTC_H_
#define KVARTET_LIB_CODEC_TRANSFORM_KVTC_H_

#include <memory>
#include <vector>

#include "codec/profile.h"
#include "codec/transform/group_rows.h"
#include "codec/transform/kvtc_plan.h"
#include "codec/transform/mode.h"

namespace kvt {

class KvtcMode final : public TransformMode {
 public:
  // For encoding at `ratio`; 0: for decoding only.
  KvtcMode(std::shared_ptr<const Profile> profile, uint32_t ratio);

  uint64_t StoredBytesMin(size_t group, const SegmentShape& shape) const override;
  uint64_t StoredBytesMax(size_t group, const SegmentShape& shape) const override;
  std::unique_ptr<GroupCoder> NewCoder(const CodingJob& job) const override;

  const ProfileGroup& group(size_t index) const { return profile_->facts().groups[index]; }
  // All of a group's components, a row each.
  const float* basis(size_t index) const { return bases_[index].data(); }
  // What an encoder uses.
  const std::vector<KvtcBlock>& blocks(size_t index) const { return blocks_[index]; }

 private:
  const std::shared_ptr<const Profile> profile_;
  std::vector<std::vector<float>> bases_;
  std::vector<std::vector<KvtcBlock>> blocks_;
};

class KvtcCoder final : public GroupCoder {
 public:
  KvtcCoder(const KvtcMode& mode, const CodingJob& job)
      : mode_(mode), rows_(job.turns, job.rows, job.token_begin) {}

  uint64_t Encode(size_t group, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite) override;
  Status Decode(size_t group, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                uint32_t layer_end) override;

 private:
  // Of tokens [token, token + count): their components into values_, component after component.
  void Project(size_t group, const SegmentShape& shape, size_t kept, uint64_t token, size_t count,
               uint64_t* nonfinite);
  void PackBlock(const KvtcBlock& block, size_t count, uint8_t* to);
  // The components of a tile's tokens out of a chunk of `count` tokens.
  void UnpackBlock(const KvtcBlock& block, size_t count, const uint8_t* from, size_t begin, size_t end);

  const KvtcMode& mode_;
  GroupRows rows_;
  std::vector<float> tile_, values_, low_, high_;
  std::vector<uint8_t> packed_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_KVTC_H_
