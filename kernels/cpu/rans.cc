// Why nothing is read or written out of bounds, whatever the stream is:
// - The table is looked up at a state's low `bits` bits, so inside of its 2^bits entries.
// - Words are read with whole vectors of N of them, one vector for N states. A round over all S states begins
//   only with at least S words left; before its vector v at most v x N of them are used, so N are left.
// - The last words, fewer than S, are copied in front of S zeros and rounds go on there. A round that went
//   beyond the real words puts the place back to where the zeros begin.
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

void Decode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count) {
  reference::RansDecode(table, stream, 0, out, count);
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

// One symbol of each of S states; returns the words used.
template <size_t S>
HWY_INLINE size_t DecodeRound(const RansDecodeTable& table, StateVec (&x)[S / kLanes], const uint8_t* words,
                              uint8_t* out) {
  const StateTag d;
  const hn::RebindToSigned<StateTag> di;
  const hn::Rebind<uint16_t, StateTag> d16;
  const auto mask = hn::Set(d, (1u << table.bits) - 1), twelve = hn::Set(d, 0xfffu);
  const auto low = hn::Set(di, static_cast<int32_t>(kRansLow));
  const auto bits = static_cast<int>(table.bits);
  const uint8_t* next = words;
  HWY_UNROLL(8)
  for (size_t v = 0; v < S / kLanes; ++v) {
    const auto entry = hn::GatherIndex(d, table.entries, hn::BitCast(di, hn::And(x[v], mask)));
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

template <size_t S>
void DecodeStates(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count) {
  const StateTag d;
  StateVec x[S / kLanes];
  for (size_t v = 0; v < S / kLanes; ++v) x[v] = hn::LoadU(d, stream->x + v * kLanes);
  size_t rounds = count / S, words = stream->words;
  const uint8_t* next = stream->next;
  for (; rounds != 0 && words >= S; --rounds, out += S) {
    const size_t used = DecodeRound<S>(table, x, next, out);
    next += used * kRansWordBytes;
    words -= used;
  }
  if (rounds != 0) {
    uint8_t last[2 * S * kRansWordBytes] = {};
    std::memcpy(last, next, words * kRansWordBytes);
    size_t place = 0;
    for (; rounds != 0; --rounds, out += S) {
      place += DecodeRound<S>(table, x, last + place * kRansWordBytes, out);
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

void Decode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count) {
  if (stream->states == 32) return DecodeStates<32>(table, stream, out, count);
  if (stream->states == 64) return DecodeStates<64>(table, stream, out, count);
  DecodeStates<128>(table, stream, out, count);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(Decode);

void RansDecode(const RansDecodeTable& table, RansStream* stream, uint8_t* out, size_t count) {
  HWY_DYNAMIC_DISPATCH(Decode)(table, stream, out, count);
}

}  // namespace kvt::kernels
#endif
