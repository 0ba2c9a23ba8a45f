#include "cpu/transform_codes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/transform_codes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "common/book_bits.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;

void Squares(const float* values, size_t count, float factor, float* sums) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  const auto scale = hn::Set(d, factor);
  for (size_t t = 0; t < whole; t += lanes) {
    const auto value = hn::Mul(hn::LoadU(d, values + t), scale);
    hn::StoreU(hn::Add(hn::Mul(value, value), hn::LoadU(d, sums + t)), d, sums + t);
  }
  for (size_t t = whole; t < count; ++t) {
    const float value = values[t] * factor;
    sums[t] = value * value + sums[t];
  }
}

uint32_t NearestLevel(const Book& book, float value) {
  uint32_t code = 0;
  for (uint32_t step = 1u << (book.bits - 1); step != 0; step >>= 1) {
    if (value > book.bounds[code + step - 1]) code += step;
  }
  return code;
}

bool Quantize(const Book& book, const float* values, size_t count, float factor, const float* factors,
              float limit, uint8_t* codes) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<uint8_t, FloatTag> d8;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  const auto scale = hn::Set(d, factor);
  const int32_t top = 1 << (book.bits - 1);
  const auto middle = hn::Set(d, book.bounds[top - 1]);
  auto worst = hn::Zero(d);
  for (size_t t = 0; t < whole; t += lanes) {
    const auto value = hn::Mul(hn::Mul(hn::LoadU(d, values + t), scale), hn::LoadU(d, factors + t));
    auto code = hn::IfThenElseZero(hn::RebindMask(di, hn::Gt(value, middle)), hn::Set(di, top));
    for (int32_t step = top / 2; step != 0; step /= 2) {
      const auto bound = hn::GatherIndex(d, book.bounds, hn::Add(code, hn::Set(di, step - 1)));
      const auto above = hn::RebindMask(di, hn::Gt(value, bound));
      code = hn::Add(code, hn::IfThenElseZero(above, hn::Set(di, step)));
    }
    worst = hn::Max(worst, hn::Abs(hn::Sub(value, hn::GatherIndex(d, book.levels, code))));
    hn::StoreU(hn::DemoteTo(d8, code), d8, codes + t);
  }
  float most = hn::GetLane(hn::MaxOfLanes(d, worst));
  for (size_t t = whole; t < count; ++t) {
    const float value = values[t] * factor * factors[t];
    codes[t] = static_cast<uint8_t>(NearestLevel(book, value));
    const float error = std::fabs(value - book.levels[codes[t]]);
    most = error > most ? error : most;
  }
  return most > limit;
}

void Dequantize(const Book& book, const uint8_t* string, uint64_t first_bit, size_t count, float factor,
                const float* factors, float* values) {
  const FloatTag d;
  const IntTag di;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  const auto scale = hn::Set(d, factor);
  const auto* base = reinterpret_cast<const int32_t*>(string + first_bit / 8);
  const auto bits = static_cast<int32_t>(book.bits), start = static_cast<int32_t>(first_bit % 8);
  const auto mask = hn::Set(di, (1 << bits) - 1), seven = hn::Set(di, 7);
  const auto advance = hn::Set(di, static_cast<int32_t>(lanes) * bits);
  auto bit = hn::Add(hn::Mul(hn::Iota(di, 0), hn::Set(di, bits)), hn::Set(di, start));
  for (size_t t = 0; t < whole; t += lanes, bit = hn::Add(bit, advance)) {
    const auto word = hn::GatherOffset(di, base, hn::ShiftRight<3>(bit));
    const auto code = hn::And(hn::Shr(word, hn::And(bit, seven)), mask);
    const auto level = hn::GatherIndex(d, book.levels, code);
    hn::StoreU(hn::Mul(hn::Mul(level, scale), hn::LoadU(d, factors + t)), d, values + t);
  }
  for (size_t t = whole; t < count; ++t) {
    const uint32_t code = CodeAt(string, first_bit + t * book.bits, book.bits);
    values[t] = book.levels[code] * factor * factors[t];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Squares);
HWY_EXPORT(Quantize);
HWY_EXPORT(Dequantize);

void AddSquares(const float* values, size_t count, float factor, float* sums) {
  HWY_DYNAMIC_DISPATCH(Squares)(values, count, factor, sums);
}

bool QuantizeComponent(const Book& book, const float* values, size_t count, float factor,
                       const float* factors, float limit, uint8_t* codes) {
  return HWY_DYNAMIC_DISPATCH(Quantize)(book, values, count, factor, factors, limit, codes);
}

void DequantizeComponent(const Book& book, const uint8_t* string, uint64_t first_bit, size_t count,
                         float factor, const float* factors, float* values) {
  HWY_DYNAMIC_DISPATCH(Dequantize)(book, string, first_bit, count, factor, factors, values);
}

}  // namespace kvt::kernels
#endif
