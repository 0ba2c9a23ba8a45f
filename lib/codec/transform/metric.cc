#include "codec/transform/metric.h"

#include <algorithm>
#include <cmath>

namespace kvt {
namespace {

constexpr double kRidge = 1e-3;
// Of the largest element.
constexpr double kAsymmetryMax = 1e-3;

Status Invalid(absl::string_view text) {
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("metric: ", text));
}

}  // namespace

StatusOr<std::vector<float>> FactorMetric(const float* matrix, size_t dim) {
  double trace = 0, largest = 0;
  for (size_t i = 0; i < dim * dim; ++i) {
    if (!std::isfinite(matrix[i]))
      return Invalid(absl::StrCat("element ", i / dim, ", ", i % dim, " is ", matrix[i]));
    largest = std::max(largest, std::fabs(double{matrix[i]}));
  }
  for (size_t i = 0; i < dim; ++i) {
    trace += double{matrix[i * dim + i]};
    for (size_t j = 0; j < i; ++j) {
      const double above = double{matrix[j * dim + i]}, below = double{matrix[i * dim + j]};
      if (std::fabs(above - below) > kAsymmetryMax * largest)
        return Invalid(absl::StrCat("elements ", i, ", ", j, " are ", below, " and ", above,
                                    ", of which a symmetric matrix has one"));
    }
  }
  if (!(trace > 0)) return Invalid(absl::StrCat("the diagonal adds up to ", trace, ", expected more than 0"));
  const double ridge = kRidge * trace / static_cast<double>(dim);
  std::vector<double> factor(dim * dim, 0.0);
  std::vector<float> packed;
  packed.reserve(PackedSize(dim));
  for (size_t i = 0; i < dim; ++i) {
    double pivot = double{matrix[i * dim + i]} + ridge;
    for (size_t k = 0; k < i; ++k) pivot -= factor[k * dim + i] * factor[k * dim + i];
    if (!(pivot > 0))
      return Invalid(absl::StrCat("pivot ", i, " is ", pivot, "; it is not positive semidefinite"));
    const double root = std::sqrt(pivot);
    factor[i * dim + i] = root;
    for (size_t j = i + 1; j < dim; ++j) {
      double sum = (double{matrix[i * dim + j]} + double{matrix[j * dim + i]}) / 2;
      for (size_t k = 0; k < i; ++k) sum -= factor[k * dim + i] * factor[k * dim + j];
      factor[i * dim + j] = sum / root;
    }
    for (size_t j = i; j < dim; ++j) packed.push_back(static_cast<float>(factor[i * dim + j]));
  }
  std::vector<float> square(dim * dim), inverse(dim * dim);
  if (!UnpackMetric(packed.data(), dim, square.data(), inverse.data()))
    return Invalid(absl::StrCat("its root or the inverse of that exceeds ", kMetricMax, "; scale it"));
  return packed;
}

bool UnpackMetric(const float* packed, size_t dim, float* square, float* inverse) {
  std::fill_n(square, dim * dim, 0.0f);
  std::fill_n(inverse, dim * dim, 0.0f);
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = i; j < dim; ++j) square[i * dim + j] = *packed++;
  }
  for (size_t i = 0; i < dim * dim; ++i)
    if (!(std::fabs(square[i]) <= kMetricMax)) return false;
  // Column by column, from the diagonal up: U x = e.
  std::vector<double> column(dim);
  for (size_t j = 0; j < dim; ++j) {
    for (size_t i = j + 1; i-- > 0;) {
      double sum = i == j ? 1.0 : 0.0;
      for (size_t k = i + 1; k <= j; ++k) sum -= double{square[i * dim + k]} * column[k];
      column[i] = sum / double{square[i * dim + i]};
      if (!(std::fabs(column[i]) <= double{kMetricMax})) return false;
      inverse[i * dim + j] = static_cast<float>(column[i]);
    }
  }
  return true;
}

}  // namespace kvt
