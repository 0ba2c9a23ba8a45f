#include "kvartet/key_frame.h"

#include <algorithm>
#include <cmath>

namespace kvt::cli {

KeyFrame::KeyFrame(const engine::RopeFacts& rope, size_t dim) {
  const bool interleaved = rope.style == engine::RopeStyle::kInterleaved;
  if (!interleaved && rope.style != engine::RopeStyle::kHalfSplit) return;
  const size_t pairs = std::min(dim, static_cast<size_t>(rope.dims)) / 2;
  frequencies_.reserve(pairs);
  for (size_t i = 0; i < pairs; ++i) {
    const double factor = rope.factors.empty() ? 1 : rope.factors[i];
    frequencies_.push_back(std::pow(rope.base, -2.0 * static_cast<double>(i) / rope.dims) / factor);
  }
  first_step_ = interleaved ? 2 : 1;
  second_ = interleaved ? 1 : pairs;
}

KeyFrame::Turn KeyFrame::At(int32_t position) const {
  Turn turn;
  turn.cosines.reserve(frequencies_.size());
  turn.sines.reserve(frequencies_.size());
  for (const double frequency : frequencies_) {
    turn.cosines.push_back(static_cast<float>(std::cos(frequency * position)));
    turn.sines.push_back(static_cast<float>(std::sin(frequency * position)));
  }
  return turn;
}

void KeyFrame::TurnBack(const Turn& turn, float* vector) const {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    float& first = vector[i * first_step_];
    float& second = vector[i * first_step_ + second_];
    const float x = first, y = second;
    first = x * turn.cosines[i] + y * turn.sines[i];
    second = y * turn.cosines[i] - x * turn.sines[i];
  }
}

}  // namespace kvt::cli
