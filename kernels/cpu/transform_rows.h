// Rows of a stream to and from the tiles of floats that the transform's matrix products work on.
//
// Stateless and thread-safe. All arithmetic is in float; the turns are given as cosines and sines.
#ifndef KVARTET_KERNELS_CPU_TRANSFORM_ROWS_H_
#define KVARTET_KERNELS_CPU_TRANSFORM_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "common/element.h"

namespace kvt::kernels {

// A rotation of pairs of a head's elements, one angle for each token and pair. For token t and pair i, the
// cosine and the sine (with any magnitude in them) are at index t * pairs + i.
struct Turns {
  const float* cosines = nullptr;  // null: nothing is turned
  const float* sines = nullptr;
  size_t pairs = 0;
  size_t offset = 0;         // first turned element of a head
  bool interleaved = false;  // pairs (2i, 2i + 1); else (i, i + pairs)
};

// Of one layer: `count` rows of heads x dim elements. Row t of the tile begins at tile + t * stride.
struct RowTile {
  Element element = Element::kF16;
  size_t count = 0, heads = 0, dim = 0;
  size_t stride = 0;
  const float* mean = nullptr;  // heads x dim
};

// tile = (turned(row) - mean) * amplitude. NaN counts as 0 and values beyond +-65504 as that bound; adds the
// NaN and infinities met.
void LoadRows(const RowTile& shape, const Turns& turns, const void* const* rows, float amplitude, float* tile,
              uint64_t* nonfinite);

// row = turned(tile * factor + mean), clamped to +-65504. The tile is overwritten.
void StoreRows(const RowTile& shape, const Turns& turns, float* tile, float factor, void* const* rows);

// `count` f16 from `halves` on, at any address.
void HalvesToFloats(const uint8_t* halves, size_t count, float* floats);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_TRANSFORM_ROWS_H_
