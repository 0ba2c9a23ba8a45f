// Transform: the codecs that project onto a calibrated basis: `transform` with static bits for each
// component, `dense` with one step for all, `kvtc` as published. One segment is one stream of one of the
// profile's groups of layers, so frames cover whole groups.
//
// Immutable but for modes of other ratios, which decoding makes when it meets them; thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_TRANSFORM_H_
#define KVARTET_LIB_CODEC_TRANSFORM_TRANSFORM_H_

#include <array>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "codec/codec.h"
#include "codec/profile.h"
#include "codec/transform/mode.h"

namespace kvt {

enum class TransformKind : uint32_t { kFixed, kDense, kKvtc };
inline constexpr uint32_t kTransformKinds = 3;

struct TransformOptions {
  TransformKind kind = TransformKind::kFixed;
  uint32_t ratio = 0;      // 0: the kind's default
  uint32_t exempt = 0;     // KVT_EXEMPT_*
  uint32_t quantiser = 0;  // KVT_QUANTISER_*
};

class Transform {
 public:
  // Of a codec's name; none for the others.
  static std::optional<TransformKind> KindOf(absl::string_view codec);

  // KVT_ERR_INVALID_ARGUMENT (an option); KVT_ERR_CORRUPT, KVT_ERR_VERSION, KVT_ERR_MISMATCH (the profile).
  static StatusOr<std::unique_ptr<const Transform>> Create(const Model& model, Bytes profile,
                                                           const TransformOptions& options);

  const Profile& profile() const { return *profile_; }

  // Completes a header whose ranges are set: profile, ratio and the segments with the most bytes they may
  // have.
  Status PlanFrame(const Model& model, FrameHeader* header) const;
  // Encodes the segments of a header from PlanFrame and sets their lengths and checksums.
  void Encode(const Model& model, const View& view, const FrameSpec& spec, FrameHeader* header,
              uint8_t* payload, CodecReport* report) const;
  // Decodes the layers of `spec`. The header's identity has been checked, its profile is this one's and its
  // codec is of a kind.
  Status Decode(const Model& model, const FrameHeader& header, Bytes frame, const FrameSpec& spec,
                const View& view, CodecReport* report) const;

 private:
  Transform(std::shared_ptr<const Profile> profile, const TransformOptions& options);

  Status CheckRatio(TransformKind kind, uint32_t ratio) const;
  std::shared_ptr<const TransformMode> ModeOf(TransformKind kind, uint32_t ratio) const;
  // Indices of the profile's groups of layers [begin, end) of a frame.
  Status CheckLayers(const FrameHeader& header, size_t* begin, size_t* end) const;

  const std::shared_ptr<const Profile> profile_;
  const TransformOptions options_;
  mutable Mutex mu_;
  mutable std::array<std::array<std::shared_ptr<const TransformMode>, kTransformRatioMax + 1>,
                     kTransformKinds>
      modes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_TRANSFORM_H_
