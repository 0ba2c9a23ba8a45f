#include "cpu/kivi.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kivi.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/lossy-inl.h"
#include "cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

// Channels worked on at a time: a multiple of every vector and of every packing unit.
constexpr size_t kChunk = 512;

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
        packed += CodeBytes(whole, bits);
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
  float scale[kChunk], minimum[kChunk];
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
            packed += CodeBytes(more, bits);
            end += more;
          }
        }
        const size_t at = index % kChunk;
        if (at == 0) {
          LoadScales(record, index, std::min(kChunk, groups - index), scale);
          LoadScales(record, groups + index, std::min(kChunk, groups - index), minimum);
        }
        DecodeGroup<decltype(type)>(buffer.codes + (from - begin), scale[at], minimum[at], rows[r], from, to);
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
  for (size_t t = 0; t < tokens; ++t, packed += CodeBytes(channels, bits)) {
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
  LoadScales(in, from, count, scale);
  LoadScales(in, channels + from, count, minimum);
  uint8_t codes[kChunk];
  const uint8_t* packed = in + channels * 2 * sizeof(uint16_t) + from * bits / 8;
  for (size_t t = 0; t < tokens; ++t, packed += CodeBytes(channels, bits)) {
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
