#include "cpu/dots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/dots.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four rows of `left` at a time share each load of a row of `right`.
constexpr size_t kTogether = 4;

void DotRows(const float* left, size_t left_rows, const float* right, size_t right_rows, size_t width,
             float* out, size_t out_stride) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), whole = width / lanes * lanes;
  for (size_t a = 0; a < left_rows; a += kTogether) {
    // Beyond the last row the last is taken again; its result is not written twice.
    const float* rows[kTogether];
    for (size_t i = 0; i < kTogether; ++i)
      rows[i] = left + (a + i < left_rows ? a + i : left_rows - 1) * width;
    for (size_t b = 0; b < right_rows; ++b) {
      const float* row = right + b * width;
      auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
      for (size_t c = 0; c < whole; c += lanes) {
        const auto value = hn::LoadU(d, row + c);
        s0 = hn::MulAdd(hn::LoadU(d, rows[0] + c), value, s0);
        s1 = hn::MulAdd(hn::LoadU(d, rows[1] + c), value, s1);
        s2 = hn::MulAdd(hn::LoadU(d, rows[2] + c), value, s2);
        s3 = hn::MulAdd(hn::LoadU(d, rows[3] + c), value, s3);
      }
      float sums[kTogether] = {hn::GetLane(hn::SumOfLanes(d, s0)), hn::GetLane(hn::SumOfLanes(d, s1)),
                               hn::GetLane(hn::SumOfLanes(d, s2)), hn::GetLane(hn::SumOfLanes(d, s3))};
      for (size_t i = 0; i < kTogether && a + i < left_rows; ++i) {
        for (size_t c = whole; c < width; ++c) sums[i] += rows[i][c] * row[c];
        out[(a + i) * out_stride + b] = sums[i];
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvt::kernels {

HWY_EXPORT(DotRows);

void DotRows(const float* left, size_t left_rows, const float* right, size_t right_rows, size_t width,
             float* out, size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(DotRows)(left, left_rows, right, right_rows, width, out, out_stride);
}

}  // namespace kvt::kernels
#endif  // HWY_ONCE
