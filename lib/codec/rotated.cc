#include "cpu/rotated.h"

#include "codec/lossy.h"

namespace kvt {
namespace {

class RotatedCodec final : public LossyCodec {
 public:
  RotatedCodec(uint32_t k_bits, uint32_t v_bits) : k_bits_(k_bits), v_bits_(v_bits) {}

 protected:
  uint64_t TokensPerRecord(const SegmentShape&) const override { return 1; }
  uint64_t RecordBytes(const SegmentShape& shape, uint64_t) const override {
    return kernels::RotatedRecordBytes(shape.heads, shape.dim, Bits(shape));
  }
  void EncodeRecords(const SegmentShape& shape, kernels::Element element, const void* const* rows,
                     uint64_t count, uint8_t* out, uint64_t* nonfinite) const override {
    kernels::RotatedEncode(element, Bits(shape), rows, count, shape.heads, shape.dim, out, nonfinite);
  }
  void DecodeRecords(const SegmentShape& shape, kernels::Element element, const uint8_t* stored,
                     uint64_t count, void* const* rows) const override {
    kernels::RotatedDecode(element, Bits(shape), stored, count, shape.heads, shape.dim, rows);
  }

 private:
  uint32_t Bits(const SegmentShape& shape) const { return shape.stream == 0 ? k_bits_ : v_bits_; }

  const uint32_t k_bits_, v_bits_;
};

}  // namespace

std::unique_ptr<const SegmentCodec> MakeRotatedCodec(uint32_t k_bits, uint32_t v_bits) {
  return std::make_unique<RotatedCodec>(k_bits, v_bits);
}

}  // namespace kvt
