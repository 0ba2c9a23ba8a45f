#include "cpu/kivi.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kivi.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/lossy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

// Channels worked on at a time: a multiple of every vector and of every packing unit.
constexpr size_t kChunk = 512;

#if HWY_TARGET != HWY_SCALAR
using Bytes16 = hn::FixedTag<uint8_t, 16>;
#endif

// `count` codes, one a byte, from packed bytes.
void Unpack(const uint8_t* packed, size_t count, uint32_t bits, uint8_t* codes) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Bytes16 d;
  const hn::Repartition<uint16_t, Bytes16> d16;
  const size_t per_byte = 8 / bits, unit = 16 * per_byte;
  for (; i + unit <= count; i += unit, packed += 16, codes += unit) {
    const auto bytes = hn::LoadU(d, packed);
    if (bits == 4) {
      const auto mask = hn::Set(d, uint8_t{15});
      const auto even = hn::And(bytes, mask), odd = hn::ShiftRight<4>(bytes);
      hn::StoreU(hn::InterleaveLower(d, even, odd), d, codes);
      hn::StoreU(hn::InterleaveUpper(d, even, odd), d, codes + 16);
    } else {
      const auto mask = hn::Set(d, uint8_t{3});
      const auto c0 = hn::And(bytes, mask), c1 = hn::And(hn::ShiftRight<2>(bytes), mask);
      const auto c2 = hn::And(hn::ShiftRight<4>(bytes), mask), c3 = hn::ShiftRight<6>(bytes);
      const auto a = hn::BitCast(d16, hn::InterleaveLower(d, c0, c1));
      const auto b = hn::BitCast(d16, hn::InterleaveLower(d, c2, c3));
      const auto e = hn::BitCast(d16, hn::InterleaveUpper(d, c0, c1));
      const auto f = hn::BitCast(d16, hn::InterleaveUpper(d, c2, c3));
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d16, a, b)), d, codes);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d16, a, b)), d, codes + 16);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d16, e, f)), d, codes + 32);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d16, e, f)), d, codes + 48);
    }
  }
#endif
  for (size_t c = 0; i < count; ++i, ++c)
    codes[c] = static_cast<uint8_t>(reference::LoadCode(packed, c, bits));
}

// The inverse; writes KiviCodeBytes(count, bits) bytes.
void Pack(const uint8_t* codes, size_t count, uint32_t bits, uint8_t* packed) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Bytes16 d;
  const hn::Repartition<int16_t, Bytes16> d16;
  const hn::Repartition<int32_t, Bytes16> d32;
  for (; i + 16 <= count; i += 16, codes += 16) {
    const auto bytes = hn::LoadU(d, codes);
    if (bits == 4) {
      const auto v = hn::BitCast(d16, bytes);
      const auto merged = hn::And(hn::Or(v, hn::ShiftRight<4>(v)), hn::Set(d16, int16_t{255}));
      const hn::Rebind<uint8_t, decltype(d16)> half;
      hn::StoreU(hn::DemoteTo(half, merged), half, packed);
      packed += 8;
    } else {
      const auto v = hn::BitCast(d32, bytes);
      const auto pairs = hn::Or(v, hn::ShiftRight<6>(v));
      const auto merged = hn::And(hn::Or(pairs, hn::ShiftRight<12>(pairs)), hn::Set(d32, 255));
      const hn::Rebind<uint8_t, decltype(d32)> quarter;
      hn::StoreU(hn::DemoteTo(quarter, merged), quarter, packed);
      packed += 4;
    }
  }
#endif
  if (i == count) return;
  std::memset(packed, 0, KiviCodeBytes(count - i, bits));
  for (size_t c = 0; i < count; ++i, ++c) reference::AddCode(codes[c], packed, c, bits);
}

HWY_INLINE FloatVec CodesToFloat(const uint8_t* codes) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<uint8_t, FloatTag> d8;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, codes)));
}

HWY_INLINE void FloatToCodes(FloatVec distance, FloatVec inverse, int32_t levels, uint8_t* codes) {
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<uint8_t, FloatTag> d8;
  const auto code = hn::NearestInt(hn::Mul(distance, inverse));
  hn::StoreU(hn::DemoteTo(d8, hn::Max(hn::Min(code, hn::Set(di, levels)), hn::Zero(di))), d8, codes);
}

// One group of a token: elements [from, to) of the row, their codes at codes[0] on.
template <typename T>
void EncodeGroup(const void* row, size_t from, size_t to, int32_t levels, uint8_t* scale_out,
                 uint8_t* minimum_out, uint8_t* codes, uint64_t* nonfinite) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = from + (to - from) / lanes * lanes;
  auto lows = hn::Set(d, kLossyMax), highs = hn::Set(d, -kLossyMax);
  for (size_t c = from; c < whole; c += lanes) {
    const auto value = AdmitVec(LoadRow<T>(row, c), nonfinite);
    lows = hn::Min(lows, value);
    highs = hn::Max(highs, value);
  }
  float low = hn::GetLane(hn::MinOfLanes(d, lows)), high = hn::GetLane(hn::MaxOfLanes(d, highs));
  for (size_t c = whole; c < to; ++c) {
    const float value = Admit(LoadElement(T::kElement, row, c), nonfinite);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const GroupScale scale = ScaleOfGroup(low, high, levels);
  StoreHalf(scale.scale, scale_out, 0);
  StoreHalf(scale.minimum, minimum_out, 0);
  const float inverse = InverseOf(F16ToF32(scale.scale)), minimum = F16ToF32(scale.minimum);
  const auto factor = hn::Set(d, inverse), zero = hn::Set(d, minimum);
  for (size_t c = from; c < whole; c += lanes)
    FloatToCodes(hn::Sub(SaturateVec(LoadRow<T>(row, c)), zero), factor, levels, codes + (c - from));
  for (size_t c = whole; c < to; ++c) {
    const float value = Saturate(LoadElement(T::kElement, row, c));
    codes[c - from] = static_cast<uint8_t>(CodeOf(value - minimum, inverse, 0, levels));
  }
}

// Elements [from, to) of a row from their codes with one scale and minimum.
template <typename T>
void DecodeGroup(const uint8_t* codes, float scale, float minimum, void* row, size_t from, size_t to) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = from + (to - from) / lanes * lanes;
  const auto factor = hn::Set(d, scale), zero = hn::Set(d, minimum);
  for (size_t c = from; c < whole; c += lanes)
    StoreRow<T>(ClampVec(hn::MulAdd(CodesToFloat(codes + (c - from)), factor, zero)), row, c);
  for (size_t c = whole; c < to; ++c)
    StoreElement(T::kElement, ValueOf(codes[c - from], scale, minimum), row, c);
}

// Visits a row's groups in pieces that do not cross a multiple of kChunk: body(group, from, to).
template <typename Body>
HWY_INLINE void ForGroups(size_t heads, size_t dim, size_t group, const Body& body) {
  size_t index = 0;
  for (size_t h = 0; h < heads; ++h) {
    for (size_t begin = 0; begin < dim; begin += group, ++index)
      body(index, h * dim + begin, h * dim + std::min(begin + group, dim));
  }
}

// A buffer of codes between the row's groups and its packed bytes, filled from group to group and emptied in
// whole chunks, so that groups and bytes need not end together.
struct CodeBuffer {
  static constexpr size_t kGroupMax = 8192;
  uint8_t codes[kChunk + kGroupMax];
};

void TokenEncode(Element element, uint32_t bits, const void* const* rows, size_t count, size_t heads,
                 size_t dim, size_t group, uint8_t* out, uint64_t* nonfinite) {
  const int32_t levels = (1 << bits) - 1;
  const size_t groups = KiviGroups(heads, dim, group);
  CodeBuffer buffer;
  WithElement(element, [&](auto type) {
    uint8_t* record = out;
    for (size_t r = 0; r < count; ++r, record += KiviTokenRecordBytes(heads, dim, group, bits)) {
      uint8_t* packed = record + groups * 2 * sizeof(uint16_t);
      size_t held = 0;
      ForGroups(heads, dim, group, [&](size_t index, size_t from, size_t to) {
        EncodeGroup<decltype(type)>(rows[r], from, to, levels, record + index * 2,
                                    record + (groups + index) * 2, buffer.codes + held, nonfinite);
        held += to - from;
        if (held < kChunk) return;
        const size_t whole = held / kChunk * kChunk;
        Pack(buffer.codes, whole, bits, packed);
        packed += KiviCodeBytes(whole, bits);
        std::memmove(buffer.codes, buffer.codes + whole, held - whole);
        held -= whole;
      });
      Pack(buffer.codes, held, bits, packed);
    }
  });
}

void TokenDecode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads, size_t dim,
                 size_t group, void* const* rows) {
  const size_t groups = KiviGroups(heads, dim, group), channels = heads * dim;
  CodeBuffer buffer;
  WithElement(element, [&](auto type) {
    const uint8_t* record = in;
    for (size_t r = 0; r < count; ++r, record += KiviTokenRecordBytes(heads, dim, group, bits)) {
      const uint8_t* packed = record + groups * 2 * sizeof(uint16_t);
      size_t begin = 0, end = 0;  // channels whose codes the buffer holds
      ForGroups(heads, dim, group, [&](size_t index, size_t from, size_t to) {
        if (to > end) {
          std::memmove(buffer.codes, buffer.codes + (from - begin), end - from);
          begin = from;
          while (end < to) {
            const size_t more = std::min(kChunk, channels - end);
            Unpack(packed, more, bits, buffer.codes + (end - begin));
            packed += KiviCodeBytes(more, bits);
            end += more;
          }
        }
        DecodeGroup<decltype(type)>(buffer.codes + (from - begin), LoadScale(record, index),
                                    LoadScale(record, groups + index), rows[r], from, to);
      });
    }
  });
}

// Channels [from, from + count) of a group of tokens, count at most kChunk.
template <typename T>
void ChannelEncodeChunk(uint32_t bits, const void* const* rows, size_t tokens, size_t channels, size_t from,
                        size_t count, uint8_t* out, uint64_t* nonfinite) {
  const FloatTag d;
  const int32_t levels = (1 << bits) - 1;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  float low[kChunk], high[kChunk];
  for (size_t c = 0; c < whole; c += lanes) {
    auto lows = hn::Set(d, kLossyMax), highs = hn::Set(d, -kLossyMax);
    for (size_t t = 0; t < tokens; ++t) {
      const auto value = AdmitVec(LoadRow<T>(rows[t], from + c), nonfinite);
      lows = hn::Min(lows, value);
      highs = hn::Max(highs, value);
    }
    hn::StoreU(lows, d, low + c);
    hn::StoreU(highs, d, high + c);
  }
  for (size_t c = whole; c < count; ++c) {
    low[c] = kLossyMax;
    high[c] = -kLossyMax;
    for (size_t t = 0; t < tokens; ++t) {
      const float value = Admit(LoadElement(T::kElement, rows[t], from + c), nonfinite);
      low[c] = std::min(low[c], value);
      high[c] = std::max(high[c], value);
    }
  }
  // From here on `low` holds the rounded minimum and `high` the scale's inverse.
  for (size_t c = 0; c < count; ++c) {
    const GroupScale scale = ScaleOfGroup(low[c], high[c], levels);
    StoreHalf(scale.scale, out, from + c);
    StoreHalf(scale.minimum, out, channels + from + c);
    low[c] = F16ToF32(scale.minimum);
    high[c] = InverseOf(F16ToF32(scale.scale));
  }
  uint8_t codes[kChunk];
  uint8_t* packed = out + channels * 2 * sizeof(uint16_t) + from * bits / 8;
  for (size_t t = 0; t < tokens; ++t, packed += KiviCodeBytes(channels, bits)) {
    for (size_t c = 0; c < whole; c += lanes) {
      const auto distance = hn::Sub(SaturateVec(LoadRow<T>(rows[t], from + c)), hn::LoadU(d, low + c));
      FloatToCodes(distance, hn::LoadU(d, high + c), levels, codes + c);
    }
    for (size_t c = whole; c < count; ++c) {
      const float value = Saturate(LoadElement(T::kElement, rows[t], from + c));
      codes[c] = static_cast<uint8_t>(CodeOf(value - low[c], high[c], 0, levels));
    }
    Pack(codes, count, bits, packed);
  }
}

void ChannelEncode(Element element, uint32_t bits, const void* const* rows, size_t tokens, size_t channels,
                   uint8_t* out, uint64_t* nonfinite) {
  WithElement(element, [&](auto type) {
    for (size_t from = 0; from < channels; from += kChunk) {
      ChannelEncodeChunk<decltype(type)>(bits, rows, tokens, channels, from,
                                         std::min(kChunk, channels - from), out, nonfinite);
    }
  });
}

template <typename T>
void ChannelDecodeChunk(uint32_t bits, const uint8_t* in, size_t tokens, size_t channels, size_t from,
                        size_t count, void* const* rows) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  float scale[kChunk], minimum[kChunk];
  for (size_t c = 0; c < count; ++c) {
    scale[c] = LoadScale(in, from + c);
    minimum[c] = LoadScale(in, channels + from + c);
  }
  uint8_t codes[kChunk];
  const uint8_t* packed = in + channels * 2 * sizeof(uint16_t) + from * bits / 8;
  for (size_t t = 0; t < tokens; ++t, packed += KiviCodeBytes(channels, bits)) {
    Unpack(packed, count, bits, codes);
    for (size_t c = 0; c < whole; c += lanes) {
      const auto value =
          hn::MulAdd(CodesToFloat(codes + c), hn::LoadU(d, scale + c), hn::LoadU(d, minimum + c));
      StoreRow<T>(ClampVec(value), rows[t], from + c);
    }
    for (size_t c = whole; c < count; ++c)
      StoreElement(T::kElement, ValueOf(codes[c], scale[c], minimum[c]), rows[t], from + c);
  }
}

void ChannelDecode(Element element, uint32_t bits, const uint8_t* in, size_t tokens, size_t channels,
                   void* const* rows) {
  WithElement(element, [&](auto type) {
    for (size_t from = 0; from < channels; from += kChunk) {
      ChannelDecodeChunk<decltype(type)>(bits, in, tokens, channels, from, std::min(kChunk, channels - from),
                                         rows);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(TokenEncode);
HWY_EXPORT(TokenDecode);
HWY_EXPORT(ChannelEncode);
HWY_EXPORT(ChannelDecode);

void KiviTokenEncode(Element element, uint32_t bits, const void* const* rows, size_t count, size_t heads,
                     size_t dim, size_t group, uint8_t* out, uint64_t* nonfinite) {
  HWY_DYNAMIC_DISPATCH(TokenEncode)(element, bits, rows, count, heads, dim, group, out, nonfinite);
}

void KiviTokenDecode(Element element, uint32_t bits, const uint8_t* in, size_t count, size_t heads,
                     size_t dim, size_t group, void* const* rows) {
  HWY_DYNAMIC_DISPATCH(TokenDecode)(element, bits, in, count, heads, dim, group, rows);
}

void KiviChannelEncode(Element element, uint32_t bits, const void* const* rows, size_t tokens,
                       size_t channels, uint8_t* out, uint64_t* nonfinite) {
  HWY_DYNAMIC_DISPATCH(ChannelEncode)(element, bits, rows, tokens, channels, out, nonfinite);
}

void KiviChannelDecode(Element element, uint32_t bits, const uint8_t* in, size_t tokens, size_t channels,
                       void* const* rows) {
  HWY_DYNAMIC_DISPATCH(ChannelDecode)(element, bits, in, tokens, channels, rows);
}

}  // namespace kvt::kernels
#endif
