// DenseMode: the transform's codec `dense`: one uniform step for all components, trellis-coded and range
// coded with calibrated tables. docs/dense.md describes the bytes.
//
// Immutable, so thread-safe. One mode serves all steps: a segment says its own.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_DENSE_H_
#define KVARTET_LIB_CODEC_TRANSFORM_DENSE_H_

#include <vector>

#include "codec/profile.h"
#include "codec/transform/dense_tables.h"
#include "codec/transform/dense_walk.h"
#include "codec/transform/mode.h"

namespace kvt {

// How exempt tokens are kept, as segments say it: kvt_codec_options_t.exempt.
enum class Exempt : uint8_t { kRaw = 1, kInt8 = 2, kFiner = 3 };

// How segments are encoded; those that are decoded say it themselves.
struct DenseOptions {
  uint32_t ratio = kDenseRatioMin;
  Exempt exempt = Exempt::kFiner;
  Quantiser quantiser = Quantiser::kTrellis;
};

class DenseMode final : public TransformMode {
 public:
  DenseMode(std::shared_ptr<const Profile> profile, const DenseOptions& options);

  uint64_t StoredBytesMin(size_t group, const SegmentShape& shape) const override;
  uint64_t StoredBytesMax(size_t group, const SegmentShape& shape) const override;
  std::unique_ptr<GroupCoder> NewCoder(const CodingJob& job) const override;

  const ProfileGroup& group(size_t index) const { return profile_->facts().groups[index]; }
  // All of a group's components, a row each.
  const float* basis(size_t index) const { return bases_[index].data(); }
  const DenseTables& tables() const { return tables_; }
  int32_t step() const { return step_; }
  Exempt exempt() const { return options_.exempt; }
  Quantiser quantiser() const { return options_.quantiser; }

 private:
  const std::shared_ptr<const Profile> profile_;
  const DenseTables tables_;
  const DenseOptions options_;
  const int32_t step_;
  std::vector<std::vector<float>> bases_;
};

// Components that are worth coding at a step: up to the last whose spread reaches it.
size_t DenseKept(const ProfileGroup& group, int32_t step);

// The lowest ratio that a profile is for in codec dense.
inline uint32_t DenseRatioMin(const ProfileFacts& facts) { return std::max(facts.ratio_min, kDenseRatioMin); }

// The step, in sixteenths, at which calibration found the ratio.
int32_t DenseStep(const DenseFacts& facts, double ratio);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_DENSE_H_
