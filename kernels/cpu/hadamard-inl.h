// The Hadamard transform of a block, for one instruction set a time: the sums of common/rotated.h's
// reference, in its order. Included once for each of them, after hwy/highway.h.
#if defined(KVARTET_KERNELS_CPU_HADAMARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KVARTET_KERNELS_CPU_HADAMARD_INL_H_
#undef KVARTET_KERNELS_CPU_HADAMARD_INL_H_
#else
#define KVARTET_KERNELS_CPU_HADAMARD_INL_H_
#endif

#include <hwy/highway.h>

#include "common/rotated.h"
#include "cpu/lossy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvt::kernels {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Whether vectors can take a block of `size` elements; other blocks go through the reference.
HWY_INLINE bool IsVectorBlock(size_t size) {
  const size_t lanes = hn::Lanes(FloatTag());
  return lanes >= 4 && lanes <= 16 && size >= lanes;
}

// -0 in every lane whose number has the bit of the stage, 0 in the others.
alignas(64) inline constexpr float kStageSigns[4][16] = {
    {0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f},
    {0.0f, 0.0f, -0.0f, -0.0f, 0.0f, 0.0f, -0.0f, -0.0f, 0.0f, 0.0f, -0.0f, -0.0f, 0.0f, 0.0f, -0.0f, -0.0f},
    {0.0f, 0.0f, 0.0f, 0.0f, -0.0f, -0.0f, -0.0f, -0.0f, 0.0f, 0.0f, 0.0f, 0.0f, -0.0f, -0.0f, -0.0f, -0.0f},
    {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f}};

// A stage inside of a vector; each lane finds its other half in `swapped`.
HWY_INLINE FloatVec Butterfly(FloatVec v, FloatVec swapped, const float* signs) {
  return hn::Add(swapped, hn::Xor(v, hn::LoadU(FloatTag(), signs)));
}

HWY_INLINE FloatVec StagesInside(FloatVec v) {
  const FloatTag d;
  v = Butterfly(v, hn::Shuffle2301(v), kStageSigns[0]);
  v = Butterfly(v, hn::Shuffle1032(v), kStageSigns[1]);
  if (hn::Lanes(d) >= 8) v = Butterfly(v, hn::SwapAdjacentBlocks(v), kStageSigns[2]);
  if (hn::Lanes(d) == 16) v = Butterfly(v, hn::SwapAdjacentBlocks(hn::ReverseBlocks(d, v)), kStageSigns[3]);
  return v;
}

// Two stages over four vectors; put(k, v) takes the k-th.
template <typename Put>
HWY_INLINE void TwoStages(FloatVec a, FloatVec b, FloatVec c, FloatVec e, const Put& put) {
  const auto ab = hn::Add(a, b), a_b = hn::Sub(a, b), ce = hn::Add(c, e), c_e = hn::Sub(c, e);
  put(0, hn::Add(ab, ce));
  put(1, hn::Add(a_b, c_e));
  put(2, hn::Sub(ab, ce));
  put(3, hn::Sub(a_b, c_e));
}

// The stages of blocks longer than four vectors, whose first ones are done; store(i, v) takes the result's
// vector from i on.
template <typename Store>
HWY_INLINE void LongStages(float* values, size_t half, size_t size, const Store& store) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  for (; 4 * half <= size; half *= 4) {
    const bool last = 4 * half == size;
    for (size_t begin = 0; begin < size; begin += 4 * half) {
      for (size_t i = begin; i != begin + half; i += lanes) {
        const auto a = hn::LoadU(d, values + i), b = hn::LoadU(d, values + i + half);
        const auto c = hn::LoadU(d, values + i + 2 * half), e = hn::LoadU(d, values + i + 3 * half);
        TwoStages(a, b, c, e, [&](size_t k, FloatVec v) {
          if (last) return store(i + k * half, v);
          hn::StoreU(v, d, values + i + k * half);
        });
      }
    }
  }
  if (half == size) return;
  for (size_t i = 0; i != half; i += lanes) {
    const auto a = hn::LoadU(d, values + i), b = hn::LoadU(d, values + i + half);
    store(i, hn::Add(a, b));
    store(i + half, hn::Sub(a, b));
  }
}

// The transform of `size` values, a power of two that IsVectorBlock takes. load(i) gives the vector of the
// values from i on, store(i, v) takes the result's; `values` is memory for `size` values, which may be those
// that load and store work on.
template <typename Load, typename Store>
HWY_INLINE void HadamardBlock(const Load& load, size_t size, float* values, const Store& store) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  if (size == lanes) return store(0, StagesInside(load(0)));
  if (size == 2 * lanes) {
    const auto a = StagesInside(load(0)), b = StagesInside(load(lanes));
    store(0, hn::Add(a, b));
    return store(lanes, hn::Sub(a, b));
  }
  const bool last = size == 4 * lanes;
  for (size_t i = 0; i < size; i += 4 * lanes) {
    const auto a = StagesInside(load(i)), b = StagesInside(load(i + lanes));
    const auto c = StagesInside(load(i + 2 * lanes)), e = StagesInside(load(i + 3 * lanes));
    TwoStages(a, b, c, e, [&](size_t k, FloatVec v) {
      if (last) return store(k * lanes, v);
      hn::StoreU(v, d, values + i + k * lanes);
    });
  }
  if (!last) LongStages(values, 4 * lanes, size, store);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace kvt::kernels
HWY_AFTER_NAMESPACE();

#endif  // KVARTET_KERNELS_CPU_HADAMARD_INL_H_
