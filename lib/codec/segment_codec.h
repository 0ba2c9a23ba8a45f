// SegmentFormat: how one codec lays out and makes the bytes of a segment (one stream of one layer).
// SegmentCodec: a format whose number of stored bytes depends on the shape only.
//
// Immutable, so thread-safe. Lengths are checked before a byte is written, and a decoder cannot leave the
// segment whatever its bytes are.
#ifndef KVARTET_LIB_CODEC_SEGMENT_CODEC_H_
#define KVARTET_LIB_CODEC_SEGMENT_CODEC_H_

#include <memory>

#include "base/bytes.h"
#include "base/status.h"
#include "codec/rows.h"
#include "cpu/hash_copy.h"

namespace kvt {

struct SegmentShape {
  uint32_t stream = 0;
  uint32_t element = 0;  // of the frame
  uint64_t tokens = 0;
  uint64_t exempt_first = 0, exempt_last = 0;  // together at most `tokens`
  uint32_t heads = 0, dim = 0;
  uint32_t third = 0;  // of the model's layers: 0, 1 or 2
  // How far RoPE turns each element of a head from one token to the next, in parts of 2^32 of a full turn;
  // null or 0: not at all. Encoders may use it, decoders do not.
  const uint32_t* turns = nullptr;

  uint64_t channels() const { return uint64_t{heads} * dim; }
  uint64_t coded() const { return tokens - exempt_first - exempt_last; }
  uint64_t raw_row_bytes() const { return channels() * ElementBytes(element); }
  uint64_t decoded_bytes() const { return tokens * raw_row_bytes(); }
};

class SegmentFormat {
 public:
  virtual ~SegmentFormat() = default;

  // Rows of fp8 cannot be computed with.
  virtual bool lossy() const = 0;
  // The most and the least that a segment of the shape has.
  virtual uint64_t StoredBytes(const SegmentShape& shape) const = 0;
  virtual uint64_t StoredBytesMin(const SegmentShape& shape) const = 0;
  // Writes at most StoredBytes(shape) bytes, adds them to `hash` and returns how many; adds the NaN and
  // infinities met by a lossy codec.
  virtual uint64_t EncodeSegment(const SegmentShape& shape, RowWindow& rows, uint8_t* out,
                                 kernels::HashCopy& hash, uint64_t* nonfinite) const = 0;
  // Adds all of `stored`, whose length is within the bounds above, to `hash`, also when it fails.
  virtual Status DecodeSegment(const SegmentShape& shape, Bytes stored, RowWindow& rows,
                               kernels::HashCopy& hash) const = 0;
};

class SegmentCodec : public SegmentFormat {
 public:
  uint64_t StoredBytesMin(const SegmentShape& shape) const final { return StoredBytes(shape); }
  uint64_t EncodeSegment(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
                         uint64_t* nonfinite) const final {
    Encode(shape, rows, out, hash, nonfinite);
    return StoredBytes(shape);
  }
  Status DecodeSegment(const SegmentShape& shape, Bytes stored, RowWindow& rows,
                       kernels::HashCopy& hash) const final {
    Decode(shape, stored.data(), rows, hash);
    return OkStatus();
  }

 protected:
  // Writes StoredBytes(shape) bytes, adding them to `hash` in order; adds the NaN and infinities met.
  virtual void Encode(const SegmentShape& shape, RowWindow& rows, uint8_t* out, kernels::HashCopy& hash,
                      uint64_t* nonfinite) const = 0;
  // Reads StoredBytes(shape) bytes, adding them to `hash` in order.
  virtual void Decode(const SegmentShape& shape, const uint8_t* stored, RowWindow& rows,
                      kernels::HashCopy& hash) const = 0;
};

struct SegmentParameters {
  std::string name;
  uint32_t group_tokens = 0, group_channels = 0;  // 0 for codecs without groups
};

// KVT_ERR_UNSUPPORTED for an unknown name; `bad_value` for a parameter outside of its range.
StatusOr<std::unique_ptr<const SegmentFormat>> MakeSegmentCodec(const SegmentParameters& parameters,
                                                                kvt_status_t bad_value);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_SEGMENT_CODEC_H_
