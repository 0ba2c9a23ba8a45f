// A frame's structure: the fixed prefix, the FlatBuffers header and the segment table, read with every check
// that needs no payload, and written. docs/frame-format.md describes the bytes.
//
// Stateless and thread-safe. Parsing is safe on hostile bytes; what it returns adds up: all segments lie one
// after another inside the payload, and all ranges are inside the frame's.
#ifndef KVARTET_LIB_CODEC_FRAME_HEADER_H_
#define KVARTET_LIB_CODEC_FRAME_HEADER_H_

#include <array>
#include <string>
#include <vector>

#include "codec/frame.h"

namespace kvt {

inline constexpr uint32_t kFrameVersion = 1;
// Segments, and the payload itself, begin at multiples of it.
inline constexpr uint64_t kFrameAlignment = 64;
inline constexpr uint32_t kFrameHeaderBytesMax = 16u << 20;
// No frame holds more tokens, so no product of a frame's extents overflows 64 bits.
inline constexpr uint64_t kFrameTokensMax = uint64_t{1} << 36;

// The codec's name in frames that hold a profile.
inline constexpr absl::string_view kProfileCodec = "profile";

inline constexpr uint64_t AlignFrame(uint64_t bytes) {
  return (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// `offset` counts from the payload's begin.
struct Segment {
  uint32_t stream = 0;
  uint32_t layer_begin = 0, layer_end = 0, head_begin = 0, head_end = 0;
  uint64_t offset = 0, stored_length = 0, decoded_length = 0, checksum = 0;
};

struct FrameHeader {
  std::array<uint8_t, KVT_FINGERPRINT_BYTES> model{};
  std::string profile;  // empty: none
  Key key;
  NamespaceDigest namespace_digest{};
  uint32_t layer_begin = 0, layer_end = 0, head_begin = 0, head_end = 0;
  uint32_t streams = 0, element = 0;
  std::string codec;
  uint32_t group_tokens = 0, group_channels = 0;
  uint32_t ratio = 0;  // 0 for codecs without one
  uint64_t first_position = 0, tokens = 0;
  // Of selected tokens: how far each one's position lies behind the first; from 0 on, ascending, with a gap.
  std::vector<uint32_t> position_offsets;
  uint64_t exempt_first = 0, exempt_last = 0;
  std::vector<Segment> segments;

  // Where the payload is in the frame, and its length; not part of the header's bytes.
  uint64_t payload_offset = 0, payload_length = 0;

  uint64_t Position(uint64_t token) const {
    return first_position + (position_offsets.empty() ? token : position_offsets[token]);
  }
  Bytes Stored(Bytes frame, const Segment& segment) const {
    return frame.subspan(payload_offset + segment.offset, segment.stored_length);
  }
  // The zero bytes between a segment and what follows it.
  Bytes Padding(Bytes frame, const Segment& segment) const {
    const uint64_t end = segment.offset + segment.stored_length;
    return frame.subspan(payload_offset + end, AlignFrame(end) - end);
  }
  // CheckZero of the padding of segment `i`.
  Status CheckPadding(Bytes frame, size_t i) const;
};

// Checks prefix and header of a whole frame; reads no payload. Takes its two checksums as verified.
StatusOr<FrameHeader> ParseFrame(Bytes frame);
// The same for a frame's front alone: at least its FrameFrontBytes.
StatusOr<FrameHeader> ParseFront(Bytes front);

// Whether a frame holds all that another would, in the same form: same model, namespace, heads, tokens, codec
// with parameters and profile, and no fewer layers. Exempt tokens do not count: they depend on the run of
// blocks that a block was stored with.
bool Covers(const FrameHeader& there, const FrameHeader& wanted);

// The FlatBuffers bytes. Their number depends on no field but `codec`, `profile`, the presence of exempt
// ranges and the numbers of segments and position offsets.
std::string EncodeHeader(const FrameHeader& header);

// Writes prefix, header and the zero bytes behind it to the front of `frame`. `selected`: the header has
// position offsets.
void WriteFrameFront(absl::string_view header, uint64_t payload_length, bool selected, uint8_t* frame);

// OK, or KVT_ERR_CORRUPT that names the place of the first byte that is not zero.
Status CheckZero(Bytes padding, absl::string_view what);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_FRAME_HEADER_H_
