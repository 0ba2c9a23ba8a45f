// Dot products of rows of floats with rows that were packed for it.
//
// Stateless and thread-safe. A product is summed in the order of the elements whatever the processor's vector
// width; whether multiplying and adding round once or twice depends on the processor.
#ifndef KVARTET_KERNELS_CPU_DOTS_H_
#define KVARTET_KERNELS_CPU_DOTS_H_

#include <cstddef>

namespace kvt::kernels {

// Rows that a panel holds.
inline constexpr size_t kPanelRows = 32;

// Floats that `count` packed rows of `width` floats take.
constexpr size_t PanelFloats(size_t count, size_t width) {
  return (count + kPanelRows - 1) / kPanelRows * kPanelRows * width;
}

// Packs rows that lie one after another: in each panel the first elements of its rows, then their second
// ones, and so on. What is missing of the last panel's rows is 0.
void PackPanels(const float* rows, size_t count, size_t width, float* panels);

// out[a * out_stride + b] = dot of row `a` of `left` and packed row `b`.
void DotPanels(const float* left, size_t left_rows, const float* panels, size_t right_rows, size_t width,
               float* out, size_t out_stride);

}  // namespace kvt::kernels

#endif  // KVARTET_KERNELS_CPU_DOTS_H_
