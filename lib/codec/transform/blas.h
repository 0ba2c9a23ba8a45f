// The dense algebra of the transform: products, covariances and eigenvectors by OpenBLAS's serial archive.
//
// Thread-safe. OpenBLAS takes a buffer of its own for each call that runs at the same time (blas_buffers.cc
// keeps those apart) and ends the process when it has no more; so a gate lets 32 calls in and keeps the
// others waiting.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_BLAS_H_
#define KVARTET_LIB_CODEC_TRANSFORM_BLAS_H_

#include <cstddef>
#include <vector>

#include "base/status.h"

namespace kvt::blas {

// A matrix by rows.
struct Matrix {
  const float* data;
  size_t stride;  // floats from one row to the next
  bool transposed = false;
};

// out[m][n] = a x b over `inner`; all strides in floats.
void Multiply(size_t m, size_t n, size_t inner, const Matrix& a, const Matrix& b, float* out,
              size_t out_stride);

// out (n x n, lower triangle) += rows^T x rows, of `count` rows of n floats.
void AddOuter(size_t n, size_t count, const float* rows, size_t stride, float* out);

// The eigenvectors of a symmetric matrix (n x n, lower triangle), which they replace: row i belongs to value
// i, in descending order. KVT_ERR_INTERNAL when the iteration does not end.
Status Eigen(size_t n, float* matrix, std::vector<float>* values);

}  // namespace kvt::blas

#endif  // KVARTET_LIB_CODEC_TRANSFORM_BLAS_H_
