#include "cpu/dots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/dots.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of `left` that share each load of a panel.
constexpr size_t kTogether = 4;

// Four rows times one panel, into rows of kPanelRows floats.
void DotPanel(const float* const rows[kTogether], const float* panel, size_t width,
              float* const out[kTogether]) {
  const hn::CappedTag<float, kPanelRows / 2> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t p = 0; p < kPanelRows; p += 2 * lanes) {
    const float* from = panel + p;
    auto a0 = hn::Zero(d), a1 = hn::Zero(d), a2 = hn::Zero(d), a3 = hn::Zero(d);
    auto b0 = hn::Zero(d), b1 = hn::Zero(d), b2 = hn::Zero(d), b3 = hn::Zero(d);
    for (size_t c = 0; c < width; ++c, from += kPanelRows) {
      const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + lanes);
      const auto r0 = hn::Set(d, rows[0][c]), r1 = hn::Set(d, rows[1][c]);
      const auto r2 = hn::Set(d, rows[2][c]), r3 = hn::Set(d, rows[3][c]);
      a0 = hn::MulAdd(r0, a, a0);
      b0 = hn::MulAdd(r0, b, b0);
      a1 = hn::MulAdd(r1, a, a1);
      b1 = hn::MulAdd(r1, b, b1);
      a2 = hn::MulAdd(r2, a, a2);
      b2 = hn::MulAdd(r2, b, b2);
      a3 = hn::MulAdd(r3, a, a3);
      b3 = hn::MulAdd(r3, b, b3);
    }
    hn::StoreU(a0, d, out[0] + p);
    hn::StoreU(b0, d, out[0] + p + lanes);
    hn::StoreU(a1, d, out[1] + p);
    hn::StoreU(b1, d, out[1] + p + lanes);
    hn::StoreU(a2, d, out[2] + p);
    hn::StoreU(b2, d, out[2] + p + lanes);
    hn::StoreU(a3, d, out[3] + p);
    hn::StoreU(b3, d, out[3] + p + lanes);
  }
}

void DotPanels(const float* left, size_t left_rows, const float* panels, size_t right_rows, size_t width,
               float* out, size_t out_stride) {
  float block[kTogether][kPanelRows];
  for (size_t b = 0; b < right_rows; b += kPanelRows, panels += kPanelRows * width) {
    const size_t columns = std::min(kPanelRows, right_rows - b);
    for (size_t a = 0; a < left_rows; a += kTogether) {
      const size_t count = std::min(kTogether, left_rows - a);
      const bool whole = count == kTogether && columns == kPanelRows;
      const float* rows[kTogether];
      float* to[kTogether];
      for (size_t i = 0; i < kTogether; ++i) {
        rows[i] = left + (a + std::min(i, count - 1)) * width;
        to[i] = whole ? out + (a + i) * out_stride + b : block[i];
      }
      DotPanel(rows, panels, width, to);
      for (size_t i = 0; i < count && !whole; ++i)
        std::memcpy(out + (a + i) * out_stride + b, block[i], columns * sizeof(float));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(DotPanels);

void PackPanels(const float* rows, size_t count, size_t width, float* panels) {
  for (size_t b = 0; b < count; b += kPanelRows, panels += kPanelRows * width) {
    const size_t held = std::min(kPanelRows, count - b);
    for (size_t c = 0; c < width; ++c) {
      float* to = panels + c * kPanelRows;
      for (size_t i = 0; i < held; ++i) to[i] = rows[(b + i) * width + c];
      std::fill(to + held, to + kPanelRows, 0.0f);
    }
  }
}

void DotPanels(const float* left, size_t left_rows, const float* panels, size_t right_rows, size_t width,
               float* out, size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(DotPanels)(left, left_rows, panels, right_rows, width, out, out_stride);
}

}  // namespace kvt::kernels
#endif  // HWY_ONCE
