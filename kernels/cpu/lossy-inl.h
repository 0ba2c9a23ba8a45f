// Vector counterparts of common/lossy.h: elements to and from floats, for one instruction set a time.
// Included once for each of them, after hwy/highway.h.
#if defined(KVARTET_KERNELS_CPU_LOSSY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVARTET_KERNELS_CPU_LOSSY_INL_H_
#undef KVARTET_KERNELS_CPU_LOSSY_INL_H_
#else
#define KVARTET_KERNELS_CPU_LOSSY_INL_H_
#endif

#include <hwy/highway.h>

#include "common/lossy.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// Types that say what the bytes of a row are.
struct F32 {
  static constexpr Element kElement = Element::kF32;
  static constexpr size_t kBytes = 4;
};
struct F16 {
  static constexpr Element kElement = Element::kF16;
  static constexpr size_t kBytes = 2;
};
struct Bf16 {
  static constexpr Element kElement = Element::kBf16;
  static constexpr size_t kBytes = 2;
};

// Highway's own conversions round to nearest even only where the processor converts.
#define KVT_NATIVE_F16 (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)

HWY_INLINE FloatVec FromF16(const uint16_t* from) {
  const FloatTag d;
#if KVT_NATIVE_F16
  const hn::Rebind<hwy::float16_t, FloatTag> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<uint16_t, FloatTag> dh;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, from));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffu));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(du, 0x38000000u));
  const auto special = hn::Or(shifted, hn::Set(du, 0x7f800000u));
  const auto tiny =
      hn::BitCast(du, hn::Mul(hn::ConvertTo(d, hn::BitCast(di, magnitude)), hn::Set(d, 0x1p-24f)));
  const auto as_int = hn::BitCast(di, magnitude);
  const auto small = hn::RebindMask(du, hn::Lt(as_int, hn::Set(di, 0x0400)));
  const auto large = hn::RebindMask(du, hn::Gt(as_int, hn::Set(di, 0x7bff)));
  const auto result = hn::IfThenElse(small, tiny, hn::IfThenElse(large, special, normal));
  return hn::BitCast(d, hn::Or(result, sign));
#endif
}

// Of finite values within +-65504.
HWY_INLINE void ToF16(FloatVec value, uint16_t* to) {
#if KVT_NATIVE_F16
  const hn::Rebind<hwy::float16_t, FloatTag> dh;
  hn::StoreU(hn::DemoteTo(dh, value), dh, reinterpret_cast<hwy::float16_t*>(to));
#else
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<uint16_t, FloatTag> dh;
  const auto bits = hn::BitCast(du, value);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
  const auto normal = hn::ShiftRight<13>(
      hn::Add(hn::Sub(magnitude, hn::Set(du, 0x38000000u)), hn::Add(odd, hn::Set(du, 0xfffu))));
  const auto tiny = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f))),
                            hn::Set(du, 0x3f000000u));
  const auto small = hn::RebindMask(du, hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, 0x38800000)));
  const auto half = hn::Or(hn::IfThenElse(small, tiny, normal), sign);
  hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, half)), dh, to);
#endif
}

template <typename T>
HWY_INLINE FloatVec LoadRow(const void* row, size_t index) {
  const FloatTag d;
  const uint8_t* from = static_cast<const uint8_t*>(row) + index * T::kBytes;
  if constexpr (T::kElement == Element::kF32) {
    return hn::LoadU(d, reinterpret_cast<const float*>(from));
  } else if constexpr (T::kElement == Element::kF16) {
    return FromF16(reinterpret_cast<const uint16_t*>(from));
  } else {
    const hn::RebindToUnsigned<FloatTag> du;
    const hn::Rebind<uint16_t, FloatTag> dh;
    const auto half = hn::LoadU(dh, reinterpret_cast<const uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, half)));
  }
}

// Of finite values within +-65504.
template <typename T>
HWY_INLINE void StoreRow(FloatVec value, void* row, size_t index) {
  const FloatTag d;
  uint8_t* to = static_cast<uint8_t*>(row) + index * T::kBytes;
  if constexpr (T::kElement == Element::kF32) {
    hn::StoreU(value, d, reinterpret_cast<float*>(to));
  } else if constexpr (T::kElement == Element::kF16) {
    ToF16(value, reinterpret_cast<uint16_t*>(to));
  } else {
    const hn::RebindToUnsigned<FloatTag> du;
    const hn::RebindToSigned<FloatTag> di;
    const hn::Rebind<uint16_t, FloatTag> dh;
    const auto bits = hn::BitCast(du, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, rounded)), dh, reinterpret_cast<uint16_t*>(to));
  }
}

HWY_INLINE FloatVec ClampVec(FloatVec value) {
  const FloatTag d;
  return hn::Max(hn::Min(value, hn::Set(d, kLossyMax)), hn::Set(d, -kLossyMax));
}

HWY_INLINE FloatVec SaturateVec(FloatVec value) {
  const FloatTag d;
  return hn::Add(ClampVec(hn::IfThenElseZero(hn::Eq(value, value), value)), hn::Zero(d));
}

HWY_INLINE FloatVec AdmitVec(FloatVec value, uint64_t* nonfinite) {
  const FloatTag d;
  const auto finite = hn::Le(hn::Abs(value), hn::Set(d, 3.40282347e38f));
  *nonfinite += hn::Lanes(d) - hn::CountTrue(d, finite);
  return SaturateVec(value);
}

// LoadScale of the halves from `index` on.
HWY_INLINE void LoadScales(const uint8_t* halves, size_t index, size_t count, float* to) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes)
    hn::StoreU(SaturateVec(LoadRow<F16>(halves, index + i)), d, to + i);
  for (size_t i = whole; i < count; ++i) to[i] = LoadScale(halves, index + i);
}

// Calls body(tag) with the type of `element`.
template <typename Body>
HWY_INLINE void WithElement(Element element, const Body& body) {
  if (element == Element::kF32) return body(F32());
  if (element == Element::kF16) return body(F16());
  body(Bf16());
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#endif  // KVARTET_KERNELS_CPU_LOSSY_INL_H_
