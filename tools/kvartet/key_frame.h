// Turns vectors back by RoPE: what a key was before it was rotated for its position, and how a query looks to
// it from there. Immutable, so thread-safe.
#ifndef KVARTET_TOOLS_KVARTET_KEY_FRAME_H_
#define KVARTET_TOOLS_KVARTET_KEY_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/rope_facts.h"

namespace kvt::cli {

class KeyFrame {
 public:
  // Angles of one position.
  struct Turn {
    std::vector<float> cosines, sines;  // by pair
  };

  // Of heads of `dim` elements. Without a rotation that the library is told of, vectors stay as they are.
  KeyFrame(const engine::RopeFacts& rope, size_t dim);

  Turn At(int32_t position) const;
  // vector[0, dim), in place.
  void TurnBack(const Turn& turn, float* vector) const;

 private:
  std::vector<double> frequencies_;     // by pair
  size_t first_step_ = 0, second_ = 0;  // pair i is (i * first_step_, i * first_step_ + second_)
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_KEY_FRAME_H_
