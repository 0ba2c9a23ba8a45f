#include "cpu/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/planes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Tokens and channels of a tile that vectors work on; what is left over goes to the reference.
constexpr size_t kTile = 16;

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

using ByteTag = hn::FixedTag<uint8_t, kTile>;
using ByteVec = hn::Vec<ByteTag>;

// Byte j of vector i becomes byte i of vector j.
HWY_INLINE void Transpose(ByteVec (&v)[kTile]) {
  const ByteTag d;
  ByteVec w[kTile];
  HWY_UNROLL(4)
  for (int round = 0; round < 4; ++round) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kTile / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + kTile / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kTile / 2]);
    }
    HWY_UNROLL(16)
    for (size_t i = 0; i < kTile; ++i) v[i] = w[i];
  }
}

template <typename Tag, typename Vec = hn::Vec<Tag>>
HWY_INLINE Vec RotateDown(Tag, Vec v) {
  return hn::Or(hn::ShiftRight<1>(v), hn::ShiftLeft<8 * sizeof(hn::TFromD<Tag>) - 1>(v));
}

template <typename Tag, typename Vec = hn::Vec<Tag>>
HWY_INLINE Vec RotateUp(Tag, Vec v) {
  return hn::Or(hn::ShiftLeft<1>(v), hn::ShiftRight<8 * sizeof(hn::TFromD<Tag>) - 1>(v));
}

// 16 elements from their bytes, plane 0 first.
template <size_t kWidth>
HWY_INLINE void StoreElements(int rotate, const ByteVec* bytes, uint8_t* row) {
  const ByteTag d;
  const hn::Repartition<uint16_t, ByteTag> d16;
  const hn::Repartition<uint32_t, ByteTag> d32;
  if constexpr (kWidth == 1) {
    (void)rotate;
    hn::StoreU(bytes[0], d, row);
  } else if constexpr (kWidth == 2) {
    auto first = hn::BitCast(d16, hn::InterleaveLower(d, bytes[1], bytes[0]));
    auto second = hn::BitCast(d16, hn::InterleaveUpper(d, bytes[1], bytes[0]));
    if (rotate != 0) first = RotateDown(d16, first), second = RotateDown(d16, second);
    hn::StoreU(hn::BitCast(d, first), d, row);
    hn::StoreU(hn::BitCast(d, second), d, row + kTile);
  } else {
    for (size_t half = 0; half < 2; ++half) {
      const auto low = hn::BitCast(d16, half == 0 ? hn::InterleaveLower(d, bytes[3], bytes[2])
                                                  : hn::InterleaveUpper(d, bytes[3], bytes[2]));
      const auto high = hn::BitCast(d16, half == 0 ? hn::InterleaveLower(d, bytes[1], bytes[0])
                                                   : hn::InterleaveUpper(d, bytes[1], bytes[0]));
      auto first = hn::BitCast(d32, hn::InterleaveLower(d16, low, high));
      auto second = hn::BitCast(d32, hn::InterleaveUpper(d16, low, high));
      if (rotate != 0) first = RotateDown(d32, first), second = RotateDown(d32, second);
      hn::StoreU(hn::BitCast(d, first), d, row + 2 * half * kTile);
      hn::StoreU(hn::BitCast(d, second), d, row + (2 * half + 1) * kTile);
    }
  }
}

// The lanes of two vectors, none above 255, as bytes.
template <typename Vec>
HWY_INLINE ByteVec Narrow(Vec a, Vec b) {
  const ByteTag d;
  const hn::Repartition<int16_t, ByteTag> di;
  const hn::Rebind<uint8_t, decltype(di)> half;
  return hn::Combine(d, hn::DemoteTo(half, hn::BitCast(di, b)), hn::DemoteTo(half, hn::BitCast(di, a)));
}

template <size_t kWidth>
HWY_INLINE void LoadElements(int rotate, const uint8_t* row, ByteVec* bytes) {
  const ByteTag d;
  const hn::Repartition<uint16_t, ByteTag> d16;
  const hn::Repartition<uint32_t, ByteTag> d32;
  const auto low_half = hn::Set(d16, uint16_t{0xff});
  // Two vectors of 16-bit lanes to their low and to their high bytes.
  const auto part = [&](auto a, auto b, ByteVec* high, ByteVec* low) {
    *low = Narrow(hn::And(a, low_half), hn::And(b, low_half));
    *high = Narrow(hn::ShiftRight<8>(a), hn::ShiftRight<8>(b));
  };
  if constexpr (kWidth == 1) {
    (void)rotate;
    bytes[0] = hn::LoadU(d, row);
  } else if constexpr (kWidth == 2) {
    auto a = hn::BitCast(d16, hn::LoadU(d, row)), b = hn::BitCast(d16, hn::LoadU(d, row + kTile));
    if (rotate != 0) a = RotateUp(d16, a), b = RotateUp(d16, b);
    part(a, b, &bytes[0], &bytes[1]);
  } else {
    hn::Vec<decltype(d16)> high[2], low[2];
    for (size_t half = 0; half < 2; ++half) {
      auto a = hn::BitCast(d32, hn::LoadU(d, row + 2 * half * kTile));
      auto b = hn::BitCast(d32, hn::LoadU(d, row + (2 * half + 1) * kTile));
      if (rotate != 0) a = RotateUp(d32, a), b = RotateUp(d32, b);
      low[half] = hn::ConcatEven(d16, hn::BitCast(d16, b), hn::BitCast(d16, a));
      high[half] = hn::ConcatOdd(d16, hn::BitCast(d16, b), hn::BitCast(d16, a));
    }
    part(high[0], high[1], &bytes[0], &bytes[1]);
    part(low[0], low[1], &bytes[2], &bytes[3]);
  }
}

template <size_t kWidth>
void JoinTile(int rotate, const uint8_t* const* planes, size_t token, size_t channel, size_t channels,
              uint8_t* const* rows) {
  const ByteTag d;
  ByteVec v[kWidth][kTile];
  for (size_t p = 0; p < kWidth; ++p) {
    HWY_UNROLL(16)
    for (size_t c = 0; c < kTile; ++c) v[p][c] = hn::LoadU(d, planes[p * channels + channel + c] + token);
    Transpose(v[p]);
  }
  HWY_UNROLL(16)
  for (size_t t = 0; t < kTile; ++t) {
    ByteVec bytes[kWidth];
    for (size_t p = 0; p < kWidth; ++p) bytes[p] = v[p][t];
    StoreElements<kWidth>(rotate, bytes, rows[token + t] + channel * kWidth);
  }
}

template <size_t kWidth>
void SplitTile(int rotate, const uint8_t* const* rows, size_t token, size_t channel, size_t channels,
               uint8_t* const* planes) {
  const ByteTag d;
  ByteVec v[kWidth][kTile];
  for (size_t t = 0; t < kTile; ++t) {
    ByteVec bytes[kWidth];
    LoadElements<kWidth>(rotate, rows[token + t] + channel * kWidth, bytes);
    for (size_t p = 0; p < kWidth; ++p) v[p][t] = bytes[p];
  }
  for (size_t p = 0; p < kWidth; ++p) {
    Transpose(v[p]);
    HWY_UNROLL(16)
    for (size_t c = 0; c < kTile; ++c) hn::StoreU(v[p][c], d, planes[p * channels + channel + c] + token);
  }
}

constexpr bool kVectors = true;

#else

template <size_t kWidth>
void JoinTile(int, const uint8_t* const*, size_t, size_t, size_t, uint8_t* const*) {}
template <size_t kWidth>
void SplitTile(int, const uint8_t* const*, size_t, size_t, size_t, uint8_t* const*) {}

constexpr bool kVectors = false;

#endif

template <typename Word>
void JoinWords(int rotate, const uint8_t* const* planes, size_t tokens, size_t channels,
               uint8_t* const* rows) {
  const size_t whole_tokens = kVectors ? tokens / kTile * kTile : 0;
  const size_t whole_channels = kVectors ? channels / kTile * kTile : 0;
  for (size_t t = 0; t < whole_tokens; t += kTile) {
    for (size_t c = 0; c < whole_channels; c += kTile)
      JoinTile<sizeof(Word)>(rotate, planes, t, c, channels, rows);
  }
  reference::JoinPlanes<Word>(rotate, planes, 0, whole_tokens, whole_channels, channels, channels, rows);
  reference::JoinPlanes<Word>(rotate, planes, whole_tokens, tokens, 0, channels, channels, rows);
}

template <typename Word>
void SplitWords(int rotate, const uint8_t* const* rows, size_t tokens, size_t channels,
                uint8_t* const* planes) {
  const size_t whole_tokens = kVectors ? tokens / kTile * kTile : 0;
  const size_t whole_channels = kVectors ? channels / kTile * kTile : 0;
  for (size_t t = 0; t < whole_tokens; t += kTile) {
    for (size_t c = 0; c < whole_channels; c += kTile)
      SplitTile<sizeof(Word)>(rotate, rows, t, c, channels, planes);
  }
  reference::SplitPlanes<Word>(rotate, rows, 0, whole_tokens, whole_channels, channels, channels, planes);
  reference::SplitPlanes<Word>(rotate, rows, whole_tokens, tokens, 0, channels, channels, planes);
}

void Join(const PlaneShape& shape, const uint8_t* const* planes, size_t tokens, size_t channels,
          uint8_t* const* rows) {
  if (shape.width == 1) return JoinWords<uint8_t>(0, planes, tokens, channels, rows);
  if (shape.width == 2) return JoinWords<uint16_t>(shape.rotate, planes, tokens, channels, rows);
  JoinWords<uint32_t>(shape.rotate, planes, tokens, channels, rows);
}

void Split(const PlaneShape& shape, const uint8_t* const* rows, size_t tokens, size_t channels,
           uint8_t* const* planes) {
  if (shape.width == 1) return SplitWords<uint8_t>(0, rows, tokens, channels, planes);
  if (shape.width == 2) return SplitWords<uint16_t>(shape.rotate, rows, tokens, channels, planes);
  SplitWords<uint32_t>(shape.rotate, rows, tokens, channels, planes);
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Join);
HWY_EXPORT(Split);

void JoinPlanes(const PlaneShape& shape, const uint8_t* const* planes, size_t tokens, size_t channels,
                uint8_t* const* rows) {
  HWY_DYNAMIC_DISPATCH(Join)(shape, planes, tokens, channels, rows);
}

void SplitPlanes(const PlaneShape& shape, const uint8_t* const* rows, size_t tokens, size_t channels,
                 uint8_t* const* planes) {
  HWY_DYNAMIC_DISPATCH(Split)(shape, rows, tokens, channels, planes);
}

}  // namespace kvt::kernels
#endif
