// The 64 bytes that every frame begins with.
#ifndef KVARTET_LIB_CODEC_FRAME_PREFIX_H_
#define KVARTET_LIB_CODEC_FRAME_PREFIX_H_

#include "base/bytes.h"
#include "base/status.h"

namespace kvt {

struct FramePrefix {
  bool selected = false;  // the header has positions
  uint32_t header_length = 0;
  uint64_t payload_length = 0;
  uint64_t header_checksum = 0;

  uint64_t PayloadOffset() const;
  uint64_t FrameBytes() const { return PayloadOffset() + payload_length; }
};

// Checks magic, version, checksum, reserved bytes and lengths.
StatusOr<FramePrefix> ReadFramePrefix(Bytes bytes);
void WriteFramePrefix(const FramePrefix& prefix, uint8_t* bytes);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_FRAME_PREFIX_H_
