// Transform: the codec of that name: a projection onto a calibrated basis, a gain a token, static bits for
// each component. One segment is one stream of one of the profile's groups of layers, so frames cover whole
// groups.
//
// Immutable but for plans of other ratios, which decoding makes when it meets them; thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_TRANSFORM_H_
#define KVARTET_LIB_CODEC_TRANSFORM_TRANSFORM_H_

#include <memory>

#include "base/mutex.h"
#include "codec/codec.h"
#include "codec/transform/plan.h"

namespace kvt {

class Transform {
 public:
  // KVT_ERR_INVALID_ARGUMENT (the ratio); KVT_ERR_CORRUPT, KVT_ERR_VERSION, KVT_ERR_MISMATCH (the profile).
  static StatusOr<std::unique_ptr<const Transform>> Create(const Model& model, Bytes profile, uint32_t ratio);

  const Profile& profile() const { return *profile_; }
  uint32_t ratio() const { return ratio_; }

  // Completes a header whose ranges are set: profile, ratio and the segments with the most bytes they may
  // have.
  Status PlanFrame(const Model& model, FrameHeader* header) const;
  // Encodes the segments of a header from PlanFrame and sets their lengths and checksums.
  void Encode(const Model& model, const View& view, const FrameSpec& spec, FrameHeader* header,
              uint8_t* payload, CodecReport* report) const;
  // Decodes the layers of `spec`. The header's identity has been checked, its profile is this one's.
  Status Decode(const Model& model, const FrameHeader& header, Bytes frame, const FrameSpec& spec,
                const View& view, CodecReport* report) const;

 private:
  Transform(std::shared_ptr<const Profile> profile, uint32_t ratio);

  std::shared_ptr<const Plan> PlanAt(uint32_t ratio) const;
  // Indices of the profile's groups of layers [begin, end) of a frame.
  Status CheckLayers(const FrameHeader& header, size_t* begin, size_t* end) const;

  const std::shared_ptr<const Profile> profile_;
  const uint32_t ratio_;
  mutable Mutex mu_;
  mutable std::array<std::shared_ptr<const Plan>, kRatioMax + 1> plans_ ABSL_GUARDED_BY(mu_);
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_TRANSFORM_H_
