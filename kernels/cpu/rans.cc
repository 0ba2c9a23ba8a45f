// Why nothing is read or written out of bounds, whatever the stream is:
// - The table is looked up at a state's low `bits` bits, so inside of its 2^bits entries.
// - Words are read with whole vectors of N of them, one vector for N states. A round over all S states begins
//   only with at least S words left; before its vector v at most v x N of them are used, so N are left.
// - The last words, fewer than S, are copied in front of S zeros and rounds go on there. A round that went
//   beyond the real words puts the place back to where the zeros begin.
// - Entries are filled in vectors that end at 2^bits at the latest.
// - A round writes S symbols, and there are count / S rounds; the rest is done by the reference.
#include "cpu/rans.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rans.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "common/rans_expand.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

void Decode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count, bool /*singly*/) {
  reference::RansDecode(table, stream, 0, out, count);
}

void FillEntries(const uint16_t* frequencies, uint32_t bits, uint32_t* entries) {
  (void)bits;
  reference::RansFillEntries(frequencies, entries);
}

#else

using StateTag = hn::CappedTag<uint32_t, 16>;
using StateVec = hn::Vec<StateTag>;
constexpr size_t kLanes = hn::MaxLanes(StateTag());

// Lane i of the result is word number (set bits of the mask below i), where the mask is set.
template <typename Mask>
HWY_INLINE StateVec ExpandWords(Mask mask, StateVec words) {
  const StateTag d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  (void)d;
  return StateVec{_mm512_maskz_expand_epi32(mask.raw, words.raw)};
#else
  static_assert(kLanes <= 8);
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  const hn::Rebind<uint8_t, StateTag> d8;
  const auto places = hn::PromoteTo(d, hn::LoadU(d8, kRansExpand.places[bits[0]]));
  return hn::TableLookupLanes(words, hn::IndicesFromVec(d, places));
#endif
}

// Stores values below 256 as bytes.
HWY_INLINE void StoreBytes(StateVec values, uint8_t* out) {
  const hn::Rebind<uint8_t, StateTag> d8;
#if HWY_TARGET == HWY_AVX3_DL
  // Highway 1.0.3 loses bytes in its TruncateTo of this target, which code has that is built with
  // -march=native.
  const hn::RebindToSigned<StateTag> di;
  hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, values)), d8, out);
#else
  hn::StoreU(hn::TruncateTo(d8, values), d8, out);
#endif
}

// The entries at these places, by a load for each.
HWY_INLINE StateVec LoadSingly(const uint32_t* entries, const uint32_t* places) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2
  const auto four = [&](size_t i) HWY_ATTR {
    const auto entry = [&](size_t k) { return static_cast<int>(entries[places[i + k]]); };
    const auto two = _mm_insert_epi32(_mm_cvtsi32_si128(entry(0)), entry(1), 1);
    return _mm_insert_epi32(_mm_insert_epi32(two, entry(2), 2), entry(3), 3);
  };
  const auto eight = [&](size_t i) HWY_ATTR {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(four(i)), four(i + 4), 1);
  };
#if HWY_TARGET == HWY_AVX2
  return StateVec{eight(0)};
#else
  return StateVec{_mm512_inserti64x4(_mm512_castsi256_si512(eight(0)), eight(8), 1)};
#endif
#else
  HWY_ALIGN uint32_t singly[kLanes];
  for (size_t i = 0; i < kLanes; ++i) singly[i] = entries[places[i]];
  return hn::Load(StateTag(), singly);
#endif
}

// One symbol of each of S states; returns the words used.
template <size_t S, bool kSingly>
HWY_INLINE size_t DecodeRound(const RansDecodeTable& table, StateVec (&x)[S / kLanes], const uint8_t* words,
                              uint8_t* out) {
  const StateTag d;
  const hn::RebindToSigned<StateTag> di;
  const hn::Rebind<uint16_t, StateTag> d16;
  const auto mask = hn::Set(d, (1u << table.bits) - 1), twelve = hn::Set(d, 0xfffu);
  const auto low = hn::Set(di, static_cast<int32_t>(kRansLow));
  const auto bits = static_cast<int>(table.bits);
  const uint8_t* next = words;
  HWY_ALIGN uint32_t places[S];
  if constexpr (kSingly) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < S / kLanes; ++v) hn::Store(hn::And(x[v], mask), d, places + v * kLanes);
    // Compilers would take the vectors apart instead of reading this, which is slower.
    __asm__("" : "+m"(places));
  }
  HWY_UNROLL(8)
  for (size_t v = 0; v < S / kLanes; ++v) {
    StateVec entry;
    if constexpr (kSingly) {
      entry = LoadSingly(table.entries, places + v * kLanes);
    } else {
      entry = hn::GatherIndex(d, table.entries, hn::BitCast(di, hn::And(x[v], mask)));
    }
    const auto frequency = hn::And(hn::ShiftRight<12>(entry), twelve);
    auto state = hn::Add(hn::Mul(frequency, hn::ShiftRightSame(x[v], bits)), hn::And(entry, twelve));
    const auto short_of = hn::RebindMask(d, hn::Lt(hn::BitCast(di, state), low));
    const auto fresh = hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(next)));
    next += kRansWordBytes * hn::CountTrue(d, short_of);
    const auto longer = hn::Or(hn::ShiftLeft<16>(state), ExpandWords(short_of, fresh));
    x[v] = hn::IfThenElse(short_of, longer, state);
    StoreBytes(hn::ShiftRight<24>(entry), out + v * kLanes);
  }
  return static_cast<size_t>(next - words) / kRansWordBytes;
}

template <size_t S, bool kSingly>
void DecodeStates(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count) {
  const StateTag d;
  StateVec x[S / kLanes];
  for (size_t v = 0; v < S / kLanes; ++v) x[v] = hn::LoadU(d, stream->x + v * kLanes);
  size_t rounds = count / S, words = stream->words;
  const uint8_t* next = stream->next;
  for (; rounds != 0 && words >= S; --rounds, out += S) {
    const size_t used = DecodeRound<S, kSingly>(table, x, next, out);
    next += used * kRansWordBytes;
    words -= used;
  }
  if (rounds != 0) {
    uint8_t last[2 * S * kRansWordBytes] = {};
    std::memcpy(last, next, words * kRansWordBytes);
    size_t place = 0;
    for (; rounds != 0; --rounds, out += S) {
      place += DecodeRound<S, kSingly>(table, x, last + place * kRansWordBytes, out);
      if (place > words) {
        stream->missing = true;
        place = words;
      }
    }
    next += place * kRansWordBytes;
    words -= place;
  }
  for (size_t v = 0; v < S / kLanes; ++v) hn::StoreU(x[v], d, stream->x + v * kLanes);
  stream->next = next;
  stream->words = words;
  reference::RansDecode(table, stream, 0, out, count % S);
}

template <bool kSingly>
void DecodeAny(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count) {
  if (stream->states == 32) return DecodeStates<32, kSingly>(table, stream, out, count);
  if (stream->states == 64) return DecodeStates<64, kSingly>(table, stream, out, count);
  DecodeStates<128, kSingly>(table, stream, out, count);
}

void Decode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count, bool singly) {
  if (singly) return DecodeAny<true>(table, stream, out, count);
  DecodeAny<false>(table, stream, out, count);
}

// Symbols are written in whole vectors where they fit; what is too much is written over by the next ones.
// Most have few entries, so the first vectors are written without asking how many.
void FillEntries(const uint16_t* frequencies, uint32_t bits, uint32_t* entries) {
  constexpr size_t kFirst = 32;
  const StateTag d;
  const auto places = hn::Iota(d, 0u), step = hn::Set(d, static_cast<uint32_t>(kLanes));
  const size_t total = size_t{1} << bits;
  size_t start = 0;
  for (uint32_t symbol = 0; symbol < kRansSymbols && start < total; ++symbol) {
    const uint32_t frequency = frequencies[symbol];
    if (frequency == 0) continue;
    const size_t end = start + frequency;
    auto entry = hn::Add(hn::Set(d, RansEntry(symbol, frequency, 0)), places);
    size_t at = start;
    if (start + kFirst <= total) {
      HWY_UNROLL(8)
      for (; at < start + kFirst; at += kLanes) {
        hn::StoreU(entry, d, entries + at);
        entry = hn::Add(entry, step);
      }
    }
    for (; at < end && at + kLanes <= total; at += kLanes) {
      hn::StoreU(entry, d, entries + at);
      entry = hn::Add(entry, step);
    }
    for (; at < end; ++at) entries[at] = RansEntry(symbol, frequency, static_cast<uint32_t>(at - start));
    start = end;
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Decode);
HWY_EXPORT(FillEntries);

bool SlowGather() {
#if HWY_ARCH_X86
  static const bool slow = __builtin_cpu_is("amd") != 0;
  return slow;
#else
  return false;
#endif
}

void RansDecode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count, bool singly) {
  HWY_DYNAMIC_DISPATCH(Decode)(table, stream, out, count, singly);
}

void RansFillEntries(const uint16_t frequencies[kRansSymbols], uint32_t bits, uint32_t* entries) {
  HWY_DYNAMIC_DISPATCH(FillEntries)(frequencies, bits, entries);
}

}  // namespace kvt::kernels
#endif
