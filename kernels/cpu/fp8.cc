#include "cpu/fp8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fp8.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/lossy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

// f16's exponent bias over the format's: bits of a code, moved to where f16 has them, are its value divided
// by 2 to the power of this.
template <typename F>
inline constexpr int kBiasOver = 15 - F::kBias;

// Values divided by 2^kBiasOver.
template <typename F>
HWY_INLINE FloatVec FromFp8(const uint8_t* codes) {
  const FloatTag d;
  const hn::Rebind<int8_t, FloatTag> d8;
  const auto code = hn::LoadU(d8, reinterpret_cast<const int8_t*>(codes));
  const auto bits = hn::And(code, hn::Set(d8, int8_t{0x7f}));
  const auto magnitude = hn::IfThenZeroElse(hn::Gt(bits, hn::Set(d8, static_cast<int8_t>(F::kNan - 1))),
                                            hn::Min(bits, hn::Set(d8, static_cast<int8_t>(F::kMost))));
  const auto sign = hn::AndNot(hn::Set(d8, int8_t{0x7f}), code);
#if KVT_NATIVE_F16
  // The sign is promoted with its copies to the left, all but the highest of which are cut off.
  const hn::Rebind<int16_t, FloatTag> d16;
  const hn::Rebind<hwy::float16_t, FloatTag> dh;
  const auto half = hn::Or(hn::ShiftLeft<10 - F::kMantissa>(hn::PromoteTo(d16, magnitude)),
                           hn::ShiftLeft<8>(hn::PromoteTo(d16, sign)));
  return hn::PromoteTo(d, hn::BitCast(dh, half));
#else
  const hn::RebindToSigned<FloatTag> di;
  const auto wide = hn::PromoteTo(di, magnitude);
  const auto normal = hn::Add(hn::ShiftLeft<23 - F::kMantissa>(wide), hn::Set(di, (127 - 15) << 23));
  const auto tiny =
      hn::BitCast(di, hn::Mul(hn::ConvertTo(d, wide), hn::Set(d, PowerOfTwo(1 - 15 - F::kMantissa))));
  const auto small = hn::Lt(wide, hn::Set(di, 1 << F::kMantissa));
  const auto value = hn::IfThenElse(small, tiny, normal);
  return hn::BitCast(d, hn::Or(value, hn::ShiftLeft<24>(hn::PromoteTo(di, sign))));
#endif
}

// Of finite values.
template <typename F>
HWY_INLINE void ToFp8(FloatVec value, uint8_t* codes) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<uint8_t, FloatTag> d8;
  const auto bits = hn::BitCast(du, value);
  const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(du, 0x80u));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const auto steps = hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, PowerOfTwo(F::kBias - 1 + F::kMantissa)));
  const auto odd = hn::And(hn::ShiftRight<23 - F::kMantissa>(magnitude), hn::Set(du, 1u));
  const uint32_t offset = (1u << (22 - F::kMantissa)) - 1 - ((127u - F::kBias) << 23);
  const auto normal =
      hn::ShiftRight<23 - F::kMantissa>(hn::Add(magnitude, hn::Add(odd, hn::Set(du, offset))));
  const auto small =
      hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<int32_t>((128u - F::kBias) << 23)));
  const auto code = hn::IfThenElse(small, hn::NearestInt(steps),
                                   hn::Min(hn::BitCast(di, normal), hn::Set(di, int32_t{F::kMost})));
  hn::StoreU(hn::DemoteTo(d8, hn::Or(code, hn::BitCast(di, sign))), d8, codes);
}

template <typename T, typename F>
void EncodeHead(const void* row, size_t begin, size_t dim, uint8_t* scale_out, size_t head, uint8_t* codes,
                uint64_t* nonfinite) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = dim / lanes * lanes;
  auto most = hn::Zero(d);
  for (size_t e = 0; e < whole; e += lanes)
    most = hn::Max(most, hn::Abs(AdmitVec(LoadRow<T>(row, begin + e), nonfinite)));
  float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (size_t e = whole; e < dim; ++e)
    largest = std::max(largest, std::fabs(Admit(LoadElement(T::kElement, row, begin + e), nonfinite)));
  const uint16_t scale = F16Up(largest / kFp8Top);
  StoreHalf(scale, scale_out, head);
  const float inverse = InverseOf(F16ToF32(scale));
  const auto factor = hn::Set(d, inverse);
  for (size_t e = 0; e < whole; e += lanes)
    ToFp8<F>(hn::Mul(SaturateVec(LoadRow<T>(row, begin + e)), factor), codes + e);
  for (size_t e = whole; e < dim; ++e)
    codes[e] = reference::F32ToFp8<F>(Saturate(LoadElement(T::kElement, row, begin + e)) * inverse);
}

template <typename T, typename F>
void DecodeHead(const uint8_t* codes, float scale, size_t begin, size_t dim, void* row) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = dim / lanes * lanes;
  const auto factor = hn::Set(d, scale * PowerOfTwo(kBiasOver<F>));
  for (size_t e = 0; e < whole; e += lanes)
    StoreRow<T>(ClampVec(hn::Mul(FromFp8<F>(codes + e), factor)), row, begin + e);
  for (size_t e = whole; e < dim; ++e)
    StoreElement(T::kElement, Clamp(reference::Fp8ToF32<F>(codes[e]) * scale), row, begin + e);
}

void Encode(Fp8 format, Element element, const void* const* rows, size_t count, size_t heads, size_t dim,
            uint8_t* out, uint64_t* nonfinite) {
  WithElement(element, [&](auto type) {
    WithFp8(format, [&](auto fp8) {
      uint8_t* record = out;
      for (size_t r = 0; r < count; ++r, record += Fp8RecordBytes(heads, dim)) {
        for (size_t h = 0; h < heads; ++h) {
          uint8_t* codes = record + heads * sizeof(uint16_t) + h * dim;
          EncodeHead<decltype(type), decltype(fp8)>(rows[r], h * dim, dim, record, h, codes, nonfinite);
        }
      }
    });
  });
}

void Decode(Fp8 format, Element element, const uint8_t* in, size_t count, size_t heads, size_t dim,
            void* const* rows) {
  WithElement(element, [&](auto type) {
    WithFp8(format, [&](auto fp8) {
      const uint8_t* record = in;
      for (size_t r = 0; r < count; ++r, record += Fp8RecordBytes(heads, dim)) {
        const uint8_t* codes = record + heads * sizeof(uint16_t);
        for (size_t h = 0; h < heads; ++h) {
          DecodeHead<decltype(type), decltype(fp8)>(codes + h * dim, LoadScale(record, h), h * dim, dim,
                                                    rows[r]);
        }
      }
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Encode);
HWY_EXPORT(Decode);

void Fp8Encode(Fp8 format, Element element, const void* const* rows, size_t count, size_t heads, size_t dim,
               uint8_t* out, uint64_t* nonfinite) {
  HWY_DYNAMIC_DISPATCH(Encode)(format, element, rows, count, heads, dim, out, nonfinite);
}

void Fp8Decode(Fp8 format, Element element, const uint8_t* in, size_t count, size_t heads, size_t dim,
               void* const* rows) {
  HWY_DYNAMIC_DISPATCH(Decode)(format, element, in, count, heads, dim, rows);
}

}  // namespace kvt::kernels
#endif
