// The parts of a softmax over a row of logits.
//
// Stateless and thread-safe. The order of a sum depends on the processor's vector width, and so do its last
// bits.
#ifndef KVARTET_KERNELS_CPU_SOFTMAX_H_
#define KVARTET_KERNELS_CPU_SOFTMAX_H_

#include <cstddef>

namespace kvt::kernels {

// Replaces each logit x by exp(scale x - the highest scale x of the row), NaN by 0, and returns the sum.
// Products beyond the finite f32 count as its bound.
float ExpRow(float* row, size_t count, float scale);

// sums[i] += factor * row[i].
void AddScaled(const float* row, size_t count, float factor, float* sums);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_SOFTMAX_H_
