#include "cpu/int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/int8.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/lossy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

template <typename T>
void EncodeHead(const void* row, size_t begin, size_t dim, uint8_t* scale_out, size_t head, uint8_t* codes,
                uint64_t* nonfinite) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<int8_t, FloatTag> d8;
  const size_t lanes = hn::Lanes(d), whole = dim / lanes * lanes;
  auto most = hn::Zero(d);
  for (size_t e = 0; e < whole; e += lanes)
    most = hn::Max(most, hn::Abs(AdmitVec(LoadRow<T>(row, begin + e), nonfinite)));
  float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (size_t e = whole; e < dim; ++e) {
    const float value = std::fabs(Admit(LoadElement(T::kElement, row, begin + e), nonfinite));
    largest = value > largest ? value : largest;
  }
  const uint16_t scale = F16Up(largest / static_cast<float>(kInt8Levels));
  StoreHalf(scale, scale_out, head);
  const float inverse = InverseOf(F16ToF32(scale));
  const auto factor = hn::Set(d, inverse);
  const auto low = hn::Set(di, -kInt8Levels), high = hn::Set(di, kInt8Levels);
  for (size_t e = 0; e < whole; e += lanes) {
    const auto code = hn::NearestInt(hn::Mul(SaturateVec(LoadRow<T>(row, begin + e)), factor));
    hn::StoreU(hn::DemoteTo(d8, hn::Max(hn::Min(code, high), low)), d8, reinterpret_cast<int8_t*>(codes + e));
  }
  for (size_t e = whole; e < dim; ++e) {
    const float value = Saturate(LoadElement(T::kElement, row, begin + e));
    codes[e] = static_cast<uint8_t>(CodeOf(value, inverse, -kInt8Levels, kInt8Levels));
  }
}

void Encode(Element element, const void* const* rows, size_t count, size_t heads, size_t dim, uint8_t* out,
            uint64_t* nonfinite) {
  WithElement(element, [&](auto type) {
    uint8_t* record = out;
    for (size_t r = 0; r < count; ++r, record += Int8RecordBytes(heads, dim)) {
      for (size_t h = 0; h < heads; ++h) {
        uint8_t* codes = record + heads * sizeof(uint16_t) + h * dim;
        EncodeHead<decltype(type)>(rows[r], h * dim, dim, record, h, codes, nonfinite);
      }
    }
  });
}

template <typename T>
void DecodeHead(const uint8_t* codes, float scale, size_t begin, size_t dim, void* row) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<int8_t, FloatTag> d8;
  const size_t lanes = hn::Lanes(d), whole = dim / lanes * lanes;
  const auto factor = hn::Set(d, scale);
  for (size_t e = 0; e < whole; e += lanes) {
    const auto code = hn::LoadU(d8, reinterpret_cast<const int8_t*>(codes + e));
    StoreRow<T>(ClampVec(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, code)), factor)), row, begin + e);
  }
  for (size_t e = whole; e < dim; ++e)
    StoreElement(T::kElement, ValueOf(static_cast<int8_t>(codes[e]), scale, 0), row, begin + e);
}

void Decode(Element element, const uint8_t* in, size_t count, size_t heads, size_t dim, void* const* rows) {
  WithElement(element, [&](auto type) {
    const uint8_t* record = in;
    for (size_t r = 0; r < count; ++r, record += Int8RecordBytes(heads, dim)) {
      const uint8_t* codes = record + heads * sizeof(uint16_t);
      for (size_t h = 0; h < heads; ++h)
        DecodeHead<decltype(type)>(codes + h * dim, LoadScale(record, h), h * dim, dim, rows[r]);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Encode);
HWY_EXPORT(Decode);

void Int8Encode(Element element, const void* const* rows, size_t count, size_t heads, size_t dim,
                uint8_t* out, uint64_t* nonfinite) {
  HWY_DYNAMIC_DISPATCH(Encode)(element, rows, count, heads, dim, out, nonfinite);
}

void Int8Decode(Element element, const uint8_t* in, size_t count, size_t heads, size_t dim,
                void* const* rows) {
  HWY_DYNAMIC_DISPATCH(Decode)(element, in, count, heads, dim, rows);
}

}  // namespace kvt::kernels
#endif
