// TransformMode: how one of the transform's codecs stores a stream of one of the profile's groups of layers.
//
// Immutable, so thread-safe. A GroupCoder belongs to one thread.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_MODE_H_
#define KVARTET_LIB_CODEC_TRANSFORM_MODE_H_

#include <memory>

#include "codec/segment_codec.h"
#include "codec/transform/turn_table.h"

namespace kvt {

// What a coder of one frame works on; all outlives the coder.
struct CodingJob {
  const TurnTable& turns;  // of the tokens from the first that is not exempt on
  RowWindow* rows = nullptr;
  uint64_t token_begin = 0;
  const int8_t* importance = nullptr;  // of each of the frame's tokens; null: all 0
};

class GroupCoder {
 public:
  virtual ~GroupCoder() = default;

  // Writes at most the mode's StoredBytesMax and returns how many; adds the NaN and infinities met.
  virtual uint64_t Encode(size_t group, const SegmentShape& shape, uint8_t* out, uint64_t* nonfinite) = 0;
  // Decodes layers [layer_begin, layer_end) of the group from bytes that are at least StoredBytesMin and
  // have their checksum. Safe on hostile bytes.
  virtual Status Decode(size_t group, const SegmentShape& shape, Bytes stored, uint32_t layer_begin,
                        uint32_t layer_end) = 0;
};

class TransformMode {
 public:
  virtual ~TransformMode() = default;

  virtual uint64_t StoredBytesMin(size_t group, const SegmentShape& shape) const = 0;
  virtual uint64_t StoredBytesMax(size_t group, const SegmentShape& shape) const = 0;
  virtual std::unique_ptr<GroupCoder> NewCoder(const CodingJob& job) const = 0;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_MODE_H_
