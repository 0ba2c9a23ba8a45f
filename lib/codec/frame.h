// Frame: what every holder of frames (cache, transfer) needs to know of one without decoding it.
//
// Stateless and thread-safe. Safe on hostile bytes: nothing outside of the given span is read.
#ifndef KVARTET_LIB_CODEC_FRAME_H_
#define KVARTET_LIB_CODEC_FRAME_H_

#include "base/bytes.h"
#include "base/status.h"
#include "key/key.h"

namespace kvt {

// Bytes of a frame's fixed prefix; enough to learn the frame's length.
inline constexpr size_t kFramePrefixBytes = 64;

struct FrameSummary {
  Key key;
  NamespaceDigest namespace_digest{};
  std::array<uint8_t, KVT_FINGERPRINT_BYTES> model{};
  uint64_t first_position = 0;
  uint64_t tokens = 0;
  uint32_t layer_begin = 0, layer_end = 0;
  uint32_t segments = 0;
  uint64_t frame_bytes = 0;
};

// The whole frame's length from its first kFramePrefixBytes, after checking them. KVT_ERR_CORRUPT;
// KVT_ERR_VERSION.
StatusOr<uint64_t> FrameLength(Bytes prefix);

// The length of what precedes the payload, from the same bytes and with the same checks.
StatusOr<uint64_t> FrameFrontBytes(Bytes start);

// Whether two frames, of which the front is enough, hold the same in the same form. False when one is broken.
bool SameForm(Bytes a, Bytes b);

// Checks prefix, header and that all lengths add up; reads no payload.
StatusOr<FrameSummary> InspectFrame(Bytes frame);

// InspectFrame and every checksum, of all segments. `*checksums` (may be null) is increased by the checksums
// verified.
StatusOr<FrameSummary> VerifyFrame(Bytes frame, uint64_t* checksums);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_FRAME_H_
