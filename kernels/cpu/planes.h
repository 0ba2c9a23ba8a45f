// Parting rows into planes of bytes and joining them on the processor's vectors; common/planes.h has the
// layout and the reference. Rows and planes are at any alignment. Thread-safe.
#ifndef KVARTET_KERNELS_CPU_PLANES_H_
#define KVARTET_KERNELS_CPU_PLANES_H_

#include "common/planes.h"

namespace kvt::kernels {

// Writes `tokens` bytes at each of width x channels places.
void SplitPlanes(const PlaneShape& shape, const uint8_t* const* rows, size_t tokens, size_t channels,
                 uint8_t* const* planes);
// The inverse: writes channels x width bytes of each row.
void JoinPlanes(const PlaneShape& shape, const uint8_t* const* planes, size_t tokens, size_t channels,
                uint8_t* const* rows);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_PLANES_H_
