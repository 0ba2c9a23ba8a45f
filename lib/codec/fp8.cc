#include "cpu/fp8.h"

#include "codec/lossy.h"

namespace kvt {
namespace {

class Fp8Codec final : public LossyCodec {
 public:
  explicit Fp8Codec(kernels::Fp8 format) : format_(format) {}

 protected:
  uint64_t TokensPerRecord(const SegmentShape&) const override { return 1; }
  uint64_t RecordBytes(const SegmentShape& shape, uint64_t) const override {
    return kernels::Fp8RecordBytes(shape.heads, shape.dim);
  }
  void EncodeRecords(const SegmentShape& shape, kernels::Element element, const void* const* rows,
                     uint64_t count, uint8_t* out, uint64_t* nonfinite) const override {
    kernels::Fp8Encode(format_, element, rows, count, shape.heads, shape.dim, out, nonfinite);
  }
  void DecodeRecords(const SegmentShape& shape, kernels::Element element, const uint8_t* stored,
                     uint64_t count, void* const* rows) const override {
    kernels::Fp8Decode(format_, element, stored, count, shape.heads, shape.dim, rows);
  }

 private:
  const kernels::Fp8 format_;
};

}  // namespace

std::unique_ptr<const SegmentCodec> MakeFp8Codec(bool e5m2) {
  return std::make_unique<Fp8Codec>(e5m2 ? kernels::Fp8::kE5m2 : kernels::Fp8::kE4m3);
}

}  // namespace kvt
