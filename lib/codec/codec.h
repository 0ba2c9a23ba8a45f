// Codec: turns rows of a view into a frame and a frame into rows. Immutable after Create; thread-safe.
#ifndef KVARTET_LIB_CODEC_CODEC_H_
#define KVARTET_LIB_CODEC_CODEC_H_

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/handles.h"
#include "base/status.h"
#include "codec/frame_header.h"
#include "codec/segment_codec.h"
#include "kvartet/codec.h"
#include "model/model.h"
#include "model/view.h"

namespace kvt {

class Transform;

// kvt_frame_spec_t after checks against a view.
struct FrameSpec {
  // Of the structure in its first draft.
  static constexpr size_t kLeastBytes = offsetof(kvt_frame_spec_t, importance);

  uint32_t layer_begin = 0, layer_end = 0;
  uint32_t exempt_first = 0, exempt_last = 0;
  uint64_t token_begin = 0, token_count = 0;
  Key key;
  NamespaceDigest namespace_digest{};
  std::optional<uint64_t> first_position;  // where it is not the view's
  std::vector<uint32_t> position_offsets;  // as in FrameHeader; empty: consecutive
  const int8_t* importance = nullptr;      // the host's; of each token, or null

  // Of the frame's first token.
  uint64_t FirstPosition(const View& view) const {
    return first_position.value_or(view.first_position() + token_begin);
  }

  static StatusOr<FrameSpec> Check(const View& view, const kvt_frame_spec_t* spec);
};

// That all values are in their range; null is. KVT_ERR_INVALID_ARGUMENT.
Status CheckImportance(absl::string_view name, const int8_t* importance, uint64_t count);

struct CodecReport {
  uint32_t segments = 0;
  uint64_t frame_bytes = 0, decoded_bytes = 0, nonfinite = 0, checksums = 0;
};

class Codec {
 public:
  // `options` has been through ReadStruct.
  static StatusOr<std::shared_ptr<const Codec>> Create(std::shared_ptr<const Model> model,
                                                       const kvt_codec_options_t& options);

  ~Codec();

  const Model& model() const { return *model_; }

  // Upper bound of Encode's frame.
  StatusOr<uint64_t> Bound(const View& view, const FrameSpec& spec) const;
  // Writes the frame to the front of `out`; KVT_ERR_BUFFER_TOO_SMALL when `out` is shorter than the frame.
  StatusOr<CodecReport> Encode(const View& view, const FrameSpec& spec, MutableBytes out) const;
  // Whether a frame, of which the front is enough, holds what Encode would write, in the same form. False
  // when it is broken.
  bool Holds(Bytes front, const View& view, const FrameSpec& spec) const;
  // Checks the frame against `spec` and decodes it into the view; see kvt_codec_decode.
  StatusOr<CodecReport> Decode(Bytes frame, const FrameSpec& spec, const View& view) const;

 private:
  Codec(std::shared_ptr<const Model> model, SegmentParameters parameters,
        std::unique_ptr<const SegmentFormat> segments, std::unique_ptr<const Transform> transform);

  Status CheckElements(bool lossy, const View& view) const;
  // One segment a layer and stream.
  Status PlanSegments(FrameHeader* header) const;
  StatusOr<CodecReport> DecodeTransform(const FrameHeader& header, Bytes frame, const FrameSpec& spec,
                                        const View& view) const;
  void EncodeSegments(const View& view, const FrameSpec& spec, FrameHeader* header, uint8_t* payload,
                      CodecReport* report) const;
  // The header of the frame that Encode writes, but for the checksums.
  StatusOr<FrameHeader> Plan(const View& view, const FrameSpec& spec) const;
  Status CheckIdentity(const FrameHeader& header, const FrameSpec& spec, const View& view) const;
  // The first segment of the layers wanted, after checking that all of them have their place and lengths.
  StatusOr<size_t> CheckSegments(const FrameHeader& header, const SegmentFormat& segments,
                                 const FrameSpec& spec) const;
  SegmentShape Shape(const FrameHeader& header, uint32_t layer, uint32_t stream) const;

  std::shared_ptr<const Model> model_;
  SegmentParameters parameters_;
  // SegmentShape::turns of stream 0; empty without RoPE.
  std::vector<uint32_t> turns_;
  // One of the two.
  std::unique_ptr<const SegmentFormat> segments_;
  std::unique_ptr<const Transform> transform_;
};

template <>
struct HandleTraits<const Codec> {
  static constexpr HandleType kType = HandleType::kCodec;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_CODEC_H_
