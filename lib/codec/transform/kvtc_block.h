// Quantising the components that a token has in one of KVTC's blocks.
//
// Stateless and thread-safe. The values that any bytes stand for are finite.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_KVTC_BLOCK_H_
#define KVARTET_LIB_CODEC_TRANSFORM_KVTC_BLOCK_H_

#include "codec/transform/kvtc_plan.h"
#include "common/fp8.h"

namespace kvt {

// Of a block of one token. Integers: value = code x scale + shift, from the smallest value to the largest.
// fp8: value = E4M3 x scale, and the shift is 0.
struct KvtcScale {
  uint16_t shift = 0, scale = 0;  // f16
};

// Of a block whose values are between `low` and `high`.
inline KvtcScale KvtcScaleOf(KvtcType type, float low, float high) {
  low = kernels::Clamp(low);
  high = kernels::Clamp(high);
  if (type == KvtcType::kFp8) {
    const float largest = high > -low ? high : -low;
    return {0, kernels::F16Up(largest / kernels::kFp8Top)};
  }
  const int32_t levels = (1 << KvtcBits(type)) - 1;
  const kernels::GroupScale group = kernels::ScaleOfGroup(low, high, levels);
  return {group.minimum, group.scale};
}

class KvtcQuantizer {
 public:
  KvtcQuantizer(KvtcType type, KvtcScale scale)
      : type_(type),
        levels_((1 << KvtcBits(type)) - 1),
        shift_(kernels::Saturate(kernels::F16ToF32(scale.shift))),
        scale_(kernels::Saturate(kernels::F16ToF32(scale.scale))),
        inverse_(kernels::InverseOf(scale_)) {}

  uint8_t Code(float value) const {
    if (type_ == KvtcType::kFp8)
      return kernels::reference::F32ToFp8<kernels::E4m3>(kernels::Saturate(value) * inverse_);
    return static_cast<uint8_t>(kernels::CodeOf(kernels::Saturate(value) - shift_, inverse_, 0, levels_));
  }
  float Value(uint8_t code) const {
    if (type_ == KvtcType::kFp8) return kernels::reference::Fp8ToF32<kernels::E4m3>(code) * scale_;
    return static_cast<float>(code) * scale_ + shift_;
  }

 private:
  KvtcType type_;
  int32_t levels_;
  float shift_, scale_, inverse_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_KVTC_BLOCK_H_
