// Packing and unpacking codes (common/pack.h) for one instruction set a time. Included once for each of them,
// after hwy/highway.h.
#if defined(KVARTET_KERNELS_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVARTET_KERNELS_CPU_PACK_INL_H_
#undef KVARTET_KERNELS_CPU_PACK_INL_H_
#else
#define KVARTET_KERNELS_CPU_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "common/pack.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
using Bytes16 = hn::FixedTag<uint8_t, 16>;

// The codes of 16 bytes, or of 2 bytes where codes have 1 bit.
template <uint32_t kBits>
HWY_INLINE void UnpackUnit(const uint8_t* packed, uint8_t* codes) {
  const Bytes16 d;
  const hn::Repartition<uint16_t, Bytes16> d16;
  if constexpr (kBits == 1) {
    alignas(16) static constexpr uint8_t kByte[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    alignas(16) static constexpr uint8_t kBit[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                     1, 2, 4, 8, 16, 32, 64, 128};
    uint16_t word;
    std::memcpy(&word, packed, sizeof word);
    const auto bit = hn::Load(d, kBit);
    const auto spread = hn::TableLookupBytes(hn::BitCast(d, hn::Set(d16, word)), hn::Load(d, kByte));
    const auto set = hn::VecFromMask(d, hn::Eq(hn::And(spread, bit), bit));
    hn::StoreU(hn::And(set, hn::Set(d, uint8_t{1})), d, codes);
  } else if constexpr (kBits == 2) {
    const auto bytes = hn::LoadU(d, packed), mask = hn::Set(d, uint8_t{3});
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
  } else {
    const auto bytes = hn::LoadU(d, packed);
    const auto even = hn::And(bytes, hn::Set(d, uint8_t{15})), odd = hn::ShiftRight<4>(bytes);
    hn::StoreU(hn::InterleaveLower(d, even, odd), d, codes);
    hn::StoreU(hn::InterleaveUpper(d, even, odd), d, codes + 16);
  }
}

// 16 codes.
template <uint32_t kBits>
HWY_INLINE void PackUnit(const uint8_t* codes, uint8_t* packed) {
  const Bytes16 d;
  const auto bytes = hn::LoadU(d, codes);
  if constexpr (kBits == 1) {
    uint8_t bits[8];
    hn::StoreMaskBits(d, hn::Eq(bytes, hn::Set(d, uint8_t{1})), bits);
    std::memcpy(packed, bits, 2);
  } else if constexpr (kBits == 2) {
    const hn::Repartition<int32_t, Bytes16> d32;
    const hn::Rebind<uint8_t, decltype(d32)> quarter;
    const auto v = hn::BitCast(d32, bytes);
    const auto pairs = hn::Or(v, hn::ShiftRight<6>(v));
    const auto merged = hn::And(hn::Or(pairs, hn::ShiftRight<12>(pairs)), hn::Set(d32, 255));
    hn::StoreU(hn::DemoteTo(quarter, merged), quarter, packed);
  } else {
    const hn::Repartition<int16_t, Bytes16> d16;
    const hn::Rebind<uint8_t, decltype(d16)> half;
    const auto v = hn::BitCast(d16, bytes);
    const auto merged = hn::And(hn::Or(v, hn::ShiftRight<4>(v)), hn::Set(d16, int16_t{255}));
    hn::StoreU(hn::DemoteTo(half, merged), half, packed);
  }
}
#endif

template <uint32_t kBits>
void UnpackBits(const uint8_t* packed, size_t count, uint8_t* codes) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr size_t kUnit = kBits == 1 ? 16 : 128 / kBits;
  for (; i + kUnit <= count; i += kUnit, packed += kUnit * kBits / 8) UnpackUnit<kBits>(packed, codes + i);
#endif
  for (size_t c = 0; i < count; ++i, ++c)
    codes[i] = static_cast<uint8_t>(reference::LoadCode(packed, c, kBits));
}

template <uint32_t kBits>
void PackBits(const uint8_t* codes, size_t count, uint8_t* packed) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; i + 16 <= count; i += 16, packed += 2 * kBits) PackUnit<kBits>(codes + i, packed);
#endif
  if (i == count) return;
  std::memset(packed, 0, CodeBytes(count - i, kBits));
  for (size_t c = 0; i < count; ++i, ++c) reference::AddCode(codes[i], packed, c, kBits);
}

// `count` codes of 1, 2, 4 or 8 bits, one a byte, from packed bytes.
HWY_INLINE void Unpack(const uint8_t* packed, size_t count, uint32_t bits, uint8_t* codes) {
  if (bits == 8) {
    std::memcpy(codes, packed, count);
  } else if (bits == 4) {
    UnpackBits<4>(packed, count, codes);
  } else if (bits == 2) {
    UnpackBits<2>(packed, count, codes);
  } else {
    UnpackBits<1>(packed, count, codes);
  }
}

// The inverse; writes CodeBytes(count, bits) bytes.
HWY_INLINE void Pack(const uint8_t* codes, size_t count, uint32_t bits, uint8_t* packed) {
  if (bits == 8) {
    std::memcpy(packed, codes, count);
  } else if (bits == 4) {
    PackBits<4>(codes, count, packed);
  } else if (bits == 2) {
    PackBits<2>(codes, count, packed);
  } else {
    PackBits<1>(codes, count, packed);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#endif  // KVARTET_KERNELS_CPU_PACK_INL_H_
