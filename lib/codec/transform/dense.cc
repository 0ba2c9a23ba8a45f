#include "codec/transform/dense.h"

#include "codec/transform/dense_segment.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

// What a component must reach in nearly all tokens to stay a zero.
constexpr float kZeroBelow = 0.6f;
// Sixteenths by which the scalar quantiser's step is finer, so that it takes about the bytes that calibration
// found for the trellis.
constexpr int32_t kScalarFiner = 4;

int32_t StepFor(const DenseFacts& facts, const DenseOptions& options) {
  const int32_t step = DenseStep(facts, options.ratio);
  return options.quantiser == Quantiser::kTrellis ? step : std::max(step - kScalarFiner, -kStepMost);
}

}  // namespace

size_t DenseKept(const ProfileGroup& group, int32_t step) {
  const float least = kZeroBelow * StepOf(step);
  size_t kept = group.components();
  while (kept > 0 && group.spread[kept - 1] < least) --kept;
  return kept;
}

int32_t DenseStep(const DenseFacts& facts, double ratio) {
  size_t upper = 1;
  while (upper + 1 < facts.ratios.size() && double{facts.ratios[upper]} < ratio) ++upper;
  const double low = std::log2(double{facts.ratios[upper - 1]}),
               high = std::log2(double{facts.ratios[upper]});
  const int32_t from = facts.steps[upper - 1], to = facts.steps[upper];
  const double part = (std::log2(ratio) - low) / (high - low);
  const double step = from + part * (to - from);
  return static_cast<int32_t>(std::lrint(std::clamp<double>(step, -kStepMost, kStepMost)));
}

DenseMode::DenseMode(std::shared_ptr<const Profile> profile, const DenseOptions& options)
    : profile_(std::move(profile)),
      tables_(*profile_->facts().dense),
      options_(options),
      step_(StepFor(*profile_->facts().dense, options)) {
  for (const ProfileGroup& group : profile_->facts().groups) {
    std::vector<float>& basis = bases_.emplace_back(group.components() * group.width());
    kernels::HalvesToFloats(group.basis, basis.size(), basis.data());
  }
}

uint64_t DenseMode::StoredBytesMin(size_t, const SegmentShape&) const { return DenseCoder::kFrontBytes; }

uint64_t DenseMode::StoredBytesMax(size_t index, const SegmentShape& shape) const {
  return DenseCoder::kFrontBytes +
         (group(index).layer_end - group(index).layer_begin) * shape.decoded_bytes();
}

std::unique_ptr<GroupCoder> DenseMode::NewCoder(const CodingJob& job) const {
  return std::make_unique<DenseCoder>(*this, job);
}

}  // namespace kvt
