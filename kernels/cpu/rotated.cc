#include "cpu/rotated.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rotated.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/hadamard-inl.h"
#include "cpu/lossy-inl.h"
#include "cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

// Memory for one head's row, and what the rotation needs of its elements and blocks.
struct Work {
  Work(size_t dim, uint32_t bits) {
    for (size_t e = 0; e < dim; ++e) signs[e] = FlipSign(0.0f, RotatedSign(e));
    ForRotatedBlocks(dim, [&](size_t index, size_t begin, size_t size) {
      blocks[index] = {begin, size, RotatedUnit(size, bits)};
    });
  }
  struct Block {
    size_t begin, size;
    float unit;
  };
  Block blocks[16];
  float signs[kRotatedDimMax];  // -0 where an element is negated
  float values[kRotatedDimMax];
  uint8_t codes[kRotatedDimMax];
};

// Scales that are converted at a time.
constexpr size_t kScales = 256;

void UnpackHead(const uint8_t* packed, size_t dim, uint32_t bits, uint8_t* codes) {
  if (bits != 3) return Unpack(packed, dim, bits, codes);
  Unpack(packed, dim, 2, codes);
  uint8_t high[kRotatedDimMax];
  Unpack(packed + CodeBytes(dim, 2), dim, 1, high);
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d), whole = dim / lanes * lanes;
  for (size_t e = 0; e < whole; e += lanes)
    hn::StoreU(hn::Or(hn::LoadU(d, codes + e), hn::ShiftLeft<2>(hn::LoadU(d, high + e))), d, codes + e);
  for (size_t e = whole; e < dim; ++e) codes[e] = static_cast<uint8_t>(codes[e] | high[e] << 2);
}

void PackHead(uint8_t* codes, size_t dim, uint32_t bits, uint8_t* packed) {
  if (bits != 3) return Pack(codes, dim, bits, packed);
  uint8_t high[kRotatedDimMax];
  for (size_t e = 0; e < dim; ++e) {
    high[e] = static_cast<uint8_t>(codes[e] >> 2);
    codes[e] &= 3;
  }
  Pack(codes, dim, 2, packed);
  Pack(high, dim, 1, packed + CodeBytes(dim, 2));
}

// Turns a block of values in place.
void Turn(float* values, size_t size) {
#if HWY_TARGET != HWY_SCALAR
  if (IsVectorBlock(size)) {
    const auto load = [&](size_t i) { return hn::LoadU(FloatTag(), values + i); };
    const auto store = [&](size_t i, FloatVec v) { hn::StoreU(v, FloatTag(), values + i); };
    return HadamardBlock(load, size, values, store);
  }
#endif
  reference::Hadamard(values, size);
}

// The reference's RotatedChoose.
uint16_t Choose(const RotatedLevels& levels, const float* values, size_t size, uint32_t bits,
                uint8_t* codes) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<uint8_t, FloatTag> d8;
  const size_t lanes = hn::Lanes(d);
  if (size < lanes) return reference::RotatedChoose(values, size, bits, codes);
  const double squares = SumOfSquares(values, size);
  const float gain = RotatedGain(squares, size, bits);
  if (gain == 0) {
    std::memset(codes, 0, size);
    return 0;
  }
  const auto factor = hn::Set(d, gain);
  const size_t count = (size_t{1} << bits) - 1;
  float bounds[15];
  for (size_t k = 0; k < count; ++k) bounds[k] = RotatedBound(levels, k);
  for (size_t i = 0; i < size; i += lanes) {
    const auto value = hn::Mul(hn::LoadU(d, values + i), factor);
    auto code = hn::Zero(di);
    for (size_t k = 0; k < count; ++k) {
      const auto above = hn::Gt(value, hn::Set(d, bounds[k]));
      code = hn::Sub(code, hn::BitCast(di, hn::VecFromMask(d, above)));
    }
    hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i);
  }
  int64_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += levels[codes[i]] * levels[codes[i]];
  return RotatedScale(squares, sum, size, bits);
}

template <typename T>
void LoadHead(const void* row, size_t begin, size_t dim, Work& work, uint64_t* nonfinite) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = dim / lanes * lanes;
  for (size_t e = 0; e < whole; e += lanes) {
    const auto value = AdmitVec(LoadRow<T>(row, begin + e), nonfinite);
    hn::StoreU(hn::Xor(value, hn::LoadU(d, work.signs + e)), d, work.values + e);
  }
  for (size_t e = whole; e < dim; ++e) {
    const float value = Admit(LoadElement(T::kElement, row, begin + e), nonfinite);
    work.values[e] = FlipSign(value, RotatedSign(e));
  }
}

void Encode(Element element, uint32_t bits, const void* const* rows, size_t count, size_t heads, size_t dim,
            uint8_t* out, uint64_t* nonfinite) {
  const RotatedLevels levels = LevelsOf(bits);
  const size_t blocks = RotatedBlocks(dim), code_bytes = RotatedCodeBytes(dim, bits);
  Work work(dim, bits);
  WithElement(element, [&](auto type) {
    uint8_t* record = out;
    for (size_t r = 0; r < count; ++r, record += RotatedRecordBytes(heads, dim, bits)) {
      uint8_t* packed = record + heads * blocks * sizeof(uint16_t);
      for (size_t h = 0; h < heads; ++h, packed += code_bytes) {
        LoadHead<decltype(type)>(rows[r], h * dim, dim, work, nonfinite);
        for (size_t i = 0; i < blocks; ++i) {
          const auto& [begin, size, unit] = work.blocks[i];
          Turn(work.values + begin, size);
          const uint16_t scale = Choose(levels, work.values + begin, size, bits, work.codes + begin);
          StoreHalf(scale, record, h * blocks + i);
        }
        PackHead(work.codes, dim, bits, packed);
      }
    }
  });
}

// The block's elements from its codes, into the row from `to` on.
template <typename T>
void DecodeBlock(const RotatedLevels& levels, const uint8_t* codes, const float* signs, size_t size,
                 float factor, float* values, void* row, size_t to) {
#if HWY_TARGET != HWY_SCALAR
  if (IsVectorBlock(size)) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const hn::Rebind<int8_t, FloatTag> d8;
    const hn::FixedTag<int8_t, 16> d16;
    const auto table = hn::LoadU(d16, levels.data());
    const auto load = [&](size_t i) {
      const auto code = hn::LoadU(d8, reinterpret_cast<const int8_t*>(codes + i));
      return hn::ConvertTo(d, hn::PromoteTo(di, hn::TableLookupBytes(table, code)));
    };
    const auto scale = hn::Set(d, factor);
    const auto store = [&](size_t i, FloatVec v) {
      StoreRow<T>(ClampVec(hn::Mul(v, hn::Xor(scale, hn::LoadU(d, signs + i)))), row, to + i);
    };
    return HadamardBlock(load, size, values, store);
  }
#endif
  for (size_t i = 0; i < size; ++i) values[i] = levels[codes[i]];
  reference::Hadamard(values, size);
  for (size_t i = 0; i < size; ++i) {
    const float value = values[i] * factor;
    StoreElement(T::kElement, Clamp(std::signbit(signs[i]) ? -value : value), row, to + i);
  }
}

void Decode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads, size_t dim,
            void* const* rows) {
  const RotatedLevels levels = LevelsOf(bits);
  const size_t blocks = RotatedBlocks(dim), code_bytes = RotatedCodeBytes(dim, bits);
  Work work(dim, bits);
  float scales[kScales];
  WithElement(element, [&](auto type) {
    const uint8_t* record = in;
    for (size_t r = 0; r < count; ++r, record += RotatedRecordBytes(heads, dim, bits)) {
      const uint8_t* packed = record + heads * blocks * sizeof(uint16_t);
      size_t scale = 0;  // of the block at hand, counted over the record
      for (size_t h = 0; h < heads; ++h, packed += code_bytes) {
        UnpackHead(packed, dim, bits, work.codes);
        for (size_t i = 0; i < blocks; ++i, ++scale) {
          const size_t at = scale % kScales;
          if (at == 0) LoadScales(record, scale, std::min(kScales, heads * blocks - scale), scales);
          const auto& [begin, size, unit] = work.blocks[i];
          DecodeBlock<decltype(type)>(levels, work.codes + begin, work.signs + begin, size, scales[at] * unit,
                                      work.values, rows[r], h * dim + begin);
        }
      }
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

void RotatedEncode(Element element, uint32_t bits, const void* const* rows, size_t count, size_t heads,
                   size_t dim, uint8_t* out, uint64_t* nonfinite) {
  HWY_DYNAMIC_DISPATCH(Encode)(element, bits, rows, count, heads, dim, out, nonfinite);
}

void RotatedDecode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads, size_t dim,
                   void* const* rows) {
  HWY_DYNAMIC_DISPATCH(Decode)(element, bits, in, count, heads, dim, rows);
}

}  // namespace kvt::kernels
#endif
