#include "model/rope.h"

#include <bit>
#include <cmath>

#include "common/convert.h"

namespace kvt {
namespace {

// Angles are computed once for this many tokens and used by every layer and head.
constexpr uint64_t kChunkTokens = 64;

struct Turn {
  double cos, sin;  // with the magnitude in them
};

// Double to float so that a further rounding to a narrower type is as if done once: inexact results get an
// odd last bit.
float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::isnan(value) || nearest == value || (bits & 1u) != 0) return nearest;
  return std::bit_cast<float>(std::fabs(nearest) > std::fabs(value) ? bits - 1 : bits + 1);
}

struct F32 {
  static double Load(const uint8_t* at) { return LoadLe<float>(at); }
  static void Store(uint8_t* at, double value) { StoreLe(at, static_cast<float>(value)); }
};
struct F16 {
  static double Load(const uint8_t* at) { return kernels::F16ToF32(LoadLe<uint16_t>(at)); }
  static void Store(uint8_t* at, double value) { StoreLe(at, kernels::F32ToF16(RoundToOdd(value))); }
};
struct Bf16 {
  static double Load(const uint8_t* at) { return kernels::Bf16ToF32(LoadLe<uint16_t>(at)); }
  static void Store(uint8_t* at, double value) { StoreLe(at, kernels::F32ToBf16(RoundToOdd(value))); }
};

// Frequencies of the pairs, in radians a position.
std::vector<double> Frequencies(const Rope& rope) {
  std::vector<double> frequencies(rope.dims / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(rope.base, -2.0 * static_cast<double>(i) / rope.dims);
    if (!rope.factors.empty()) frequencies[i] /= rope.factors[i];
  }
  return frequencies;
}

void FillTurns(const Rope& rope, const std::vector<double>& frequencies, uint64_t position, bool undo,
               Turn* turns) {
  // Undo turns by the negative angle and divides by the magnitude.
  const double scale = undo ? 1 / rope.magnitude : rope.magnitude, sign = undo ? -1 : 1;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies[i];
    turns[i] = {scale * std::cos(angle), sign * scale * std::sin(angle)};
  }
}

// `row` points at the first rotated element.
template <typename Element>
void TurnRow(uint8_t* row, const std::vector<Turn>& turns, size_t first_turn, size_t pairs, int64_t pair_step,
             int64_t partner) {
  const Turn* turn = turns.data() + first_turn;
  for (size_t i = 0; i < pairs; ++i, row += pair_step) {
    const double a = Element::Load(row), b = Element::Load(row + partner);
    Element::Store(row, a * turn[i].cos - b * turn[i].sin);
    Element::Store(row + partner, a * turn[i].sin + b * turn[i].cos);
  }
}

template <typename Element>
void TurnTokens(const Rope& rope, const View& view, uint64_t begin, uint64_t count, bool undo) {
  const std::vector<double> frequencies = Frequencies(rope);
  const size_t pairs = frequencies.size();
  const int64_t stride = view.element_stride(0), offset = stride * static_cast<int64_t>(rope.offset);
  const bool interleaved = rope.style == KVT_ROPE_INTERLEAVED;
  const int64_t pair_step = interleaved ? 2 * stride : stride;
  const int64_t partner = interleaved ? stride : stride * static_cast<int64_t>(pairs);
  const int64_t heads = view.head_end() - view.head_begin();
  std::vector<Turn> turns(std::min(count, kChunkTokens) * pairs);
  for (uint64_t done = 0; done < count; done += kChunkTokens) {
    const uint64_t first = begin + done, tokens = std::min(kChunkTokens, count - done);
    for (uint64_t t = 0; t < tokens; ++t)
      FillTurns(rope, frequencies, view.first_position() + first + t, undo, turns.data() + t * pairs);
    for (uint32_t layer = view.layer_begin(); layer < view.layer_end(); ++layer) {
      for (uint64_t t = 0; t < tokens; ++t) {
        uint8_t* token = view.Token(layer, 0, first + t) + offset;
        for (int64_t head = 0; head < heads; ++head)
          TurnRow<Element>(token + head * view.head_stride(0), turns, t * pairs, pairs, pair_step, partner);
      }
    }
  }
}

}  // namespace

Status TurnRope(const Model& model, const View& view, uint64_t begin, uint64_t count, bool undo) {
  if (begin > view.tokens() || count > view.tokens() - begin) {
    return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("token_begin is ", begin, " and count is ", count,
                                                    ", the view holds ", view.tokens(), " tokens"));
  }
  const bool wide = view.element() == KVT_ELEMENT_F32 || view.element() == KVT_ELEMENT_F16 ||
                    view.element() == KVT_ELEMENT_BF16;
  if (!wide) {
    return Error(KVT_ERR_UNSUPPORTED, absl::StrCat("kvt_view.element is ", ElementName(view.element()),
                                                   "; RoPE is turned in f32, f16 and bf16 rows"));
  }
  const Rope& rope = model.rope();
  if (rope.style == KVT_ROPE_NONE) return OkStatus();
  if (view.element() == KVT_ELEMENT_F32) {
    TurnTokens<F32>(rope, view, begin, count, undo);
  } else if (view.element() == KVT_ELEMENT_F16) {
    TurnTokens<F16>(rope, view, begin, count, undo);
  } else {
    TurnTokens<Bf16>(rope, view, begin, count, undo);
  }
  return OkStatus();
}

}  // namespace kvt
