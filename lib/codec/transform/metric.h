// The metric of a head: what an error of its vector costs. For a symmetric positive definite matrix M the
// cost of e is e^T M e = |U e|^2 with the upper triangular U of M = U^T U (Cholesky).
//
// Stateless and thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_METRIC_H_
#define KVARTET_LIB_CODEC_TRANSFORM_METRIC_H_

#include <vector>

#include "base/status.h"

namespace kvt {

// Bound of the elements of U and of its inverse, so that nothing that is computed with them overflows.
inline constexpr float kMetricMax = 0x1p20f;

inline size_t PackedSize(size_t dim) { return dim * (dim + 1) / 2; }

// U of a symmetric matrix by rows, packed by rows (row i from its diagonal on), after a thousandth of the
// mean of the diagonal has been added to it. KVT_ERR_INVALID_ARGUMENT when the matrix is not finite, not
// symmetric or not positive semidefinite, or the elements exceed the bound.
StatusOr<std::vector<float>> FactorMetric(const float* matrix, size_t dim);

// A packed U as a square by rows, and its inverse. False when one of them exceeds the bound.
bool UnpackMetric(const float* packed, size_t dim, float* square, float* inverse);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_METRIC_H_
