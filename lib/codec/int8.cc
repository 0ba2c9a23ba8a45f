#include "cpu/int8.h"

#include "codec/lossy.h"

namespace kvt {
namespace {

class Int8Codec final : public LossyCodec {
 protected:
  uint64_t TokensPerRecord(const SegmentShape&) const override { return 1; }
  uint64_t RecordBytes(const SegmentShape& shape, uint64_t) const override {
    return kernels::Int8RecordBytes(shape.heads, shape.dim);
  }
  void EncodeRecords(const SegmentShape& shape, kernels::Element element, const void* const* rows,
                     uint64_t count, uint8_t* out, uint64_t* nonfinite) const override {
    kernels::Int8Encode(element, rows, count, shape.heads, shape.dim, out, nonfinite);
  }
  void DecodeRecords(const SegmentShape& shape, kernels::Element element, const uint8_t* stored,
                     uint64_t count, void* const* rows) const override {
    kernels::Int8Decode(element, stored, count, shape.heads, shape.dim, rows);
  }
};

}  // namespace

std::unique_ptr<const SegmentCodec> MakeInt8Codec() { return std::make_unique<Int8Codec>(); }

}  // namespace kvt
