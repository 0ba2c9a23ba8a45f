#include "codec/transform/turn_table.h"

#include <cmath>

namespace kvt {

TurnTable::TurnTable(const Rope& rope, uint64_t first, uint64_t count, bool undo) {
  if (rope.style == KVT_ROPE_NONE) return;
  const size_t pairs = rope.dims / 2;
  shape_.pairs = pairs;
  shape_.offset = rope.offset;
  shape_.interleaved = rope.style == KVT_ROPE_INTERLEAVED;
  std::vector<double> frequencies(pairs);
  for (size_t i = 0; i < pairs; ++i) {
    frequencies[i] = std::pow(rope.base, -2.0 * static_cast<double>(i) / rope.dims);
    if (!rope.factors.empty()) frequencies[i] /= rope.factors[i];
  }
  const double scale = undo ? 1 / rope.magnitude : rope.magnitude, sign = undo ? -scale : scale;
  cosines_.resize(count * pairs);
  sines_.resize(count * pairs);
  for (uint64_t t = 0; t < count; ++t) {
    for (size_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(first + t) * frequencies[i];
      cosines_[t * pairs + i] = static_cast<float>(scale * std::cos(angle));
      sines_[t * pairs + i] = static_cast<float>(sign * std::sin(angle));
    }
  }
}

kernels::Turns TurnTable::From(uint32_t stream, uint64_t token) const {
  kernels::Turns turns = shape_;
  if (stream != 0 || turns.pairs == 0) return kernels::Turns();
  turns.cosines = cosines_.data() + token * turns.pairs;
  turns.sines = sines_.data() + token * turns.pairs;
  return turns;
}

}  // namespace kvt
