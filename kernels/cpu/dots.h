// Dot products of rows of floats with rows of floats.
//
// Stateless and thread-safe. The order of a sum depends on the processor's vector width, and so do its last
// bits.
#ifndef KVARTET_KERNELS_CPU_DOTS_H_
#define KVARTET_KERNELS_CPU_DOTS_H_

#include <cstddef>

namespace kvt::kernels {

// out[a * out_stride + b] = dot of row `a` of `left` and row `b` of `right`. Rows have `width` floats and lie
// one after another.
void DotRows(const float* left, size_t left_rows, const float* right, size_t right_rows, size_t width,
             float* out, size_t out_stride);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_DOTS_H_
