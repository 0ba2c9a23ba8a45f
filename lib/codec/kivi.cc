#include "cpu/kivi.h"

#include <algorithm>

#include "codec/lossy.h"

namespace kvt {
namespace {

class KiviCodec final : public LossyCodec {
 public:
  KiviCodec(uint32_t bits, uint32_t group_tokens, uint32_t group_channels)
      : bits_(bits), group_tokens_(group_tokens), group_channels_(group_channels) {}

 protected:
  uint64_t TokensPerRecord(const SegmentShape& shape) const override {
    return ByChannel(shape) ? group_tokens_ : 1;
  }
  uint64_t RecordBytes(const SegmentShape& shape, uint64_t tokens) const override {
    if (ByChannel(shape)) return kernels::KiviChannelRecordBytes(tokens, shape.channels(), bits_);
    return kernels::KiviTokenRecordBytes(shape.heads, shape.dim, Group(shape), bits_);
  }
  void EncodeRecords(const SegmentShape& shape, kernels::Element element, const void* const* rows,
                     uint64_t count, uint8_t* out, uint64_t* nonfinite) const override {
    if (ByChannel(shape)) {
      kernels::KiviChannelEncode(element, bits_, rows, count, shape.channels(), out, nonfinite);
    } else {
      kernels::KiviTokenEncode(element, bits_, rows, count, shape.heads, shape.dim, Group(shape), out,
                               nonfinite);
    }
  }
  void DecodeRecords(const SegmentShape& shape, kernels::Element element, const uint8_t* stored,
                     uint64_t count, void* const* rows) const override {
    if (ByChannel(shape)) {
      kernels::KiviChannelDecode(element, bits_, stored, count, shape.channels(), rows);
    } else {
      kernels::KiviTokenDecode(element, bits_, stored, count, shape.heads, shape.dim, Group(shape), rows);
    }
  }

 private:
  static bool ByChannel(const SegmentShape& shape) { return shape.stream == 0; }
  size_t Group(const SegmentShape& shape) const { return std::min(group_channels_, shape.dim); }

  const uint32_t bits_, group_tokens_, group_channels_;
};

}  // namespace

std::unique_ptr<const SegmentCodec> MakeKiviCodec(uint32_t bits, uint32_t group_tokens,
                                                  uint32_t group_channels) {
  return std::make_unique<KiviCodec>(bits, group_tokens, group_channels);
}

}  // namespace kvt
