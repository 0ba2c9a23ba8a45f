// What a host sets of a calibration: metrics and weights, and what they make of a group's rows.
#include <cmath>

#include "codec/transform/blas.h"
#include "codec/transform/calibrator.h"
#include "codec/transform/metric.h"
#include "common/lossy.h"

namespace kvt {
namespace {

constexpr double kLeastVariance = 1e-9;
constexpr double kWeightMost = 1e3;

}  // namespace

Status Calibrator::CheckPlace(uint32_t stream, uint32_t layer) const {
  if (stream < model_->streams() && layer >= options_.layer_begin && layer < options_.layer_end)
    return OkStatus();
  return Error(KVT_ERR_OUT_OF_RANGE,
               absl::StrCat("calibration: stream ", stream, " and layer ", layer, ", expected one of ",
                            model_->streams(), " streams and layers [", options_.layer_begin, ", ",
                            options_.layer_end, ")"));
}

Status Calibrator::SetMetric(uint32_t stream, uint32_t layer, uint32_t head, std::span<const float> matrix) {
  KVT_RETURN_IF_ERROR(CheckPlace(stream, layer));
  if (head < options_.head_begin || head >= options_.head_end) {
    return Error(KVT_ERR_OUT_OF_RANGE, absl::StrCat("calibration: head is ", head, ", expected one of [",
                                                    options_.head_begin, ", ", options_.head_end, ")"));
  }
  const size_t dim = model_->head_dim(stream);
  if (matrix.size() != dim * dim) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("calibration: count is ", matrix.size(), ", expected ", dim * dim, " floats"));
  }
  KVT_ASSIGN_OR_RETURN(std::vector<float> packed, FactorMetric(matrix.data(), dim));
  MutexLock lock(&mu_);
  finished_.clear();
  const size_t heads = options_.head_end - options_.head_begin;
  metrics_[stream][(layer - options_.layer_begin) * heads + (head - options_.head_begin)] = std::move(packed);
  return OkStatus();
}

Status Calibrator::SetWeight(uint32_t stream, uint32_t layer, float weight) {
  KVT_RETURN_IF_ERROR(CheckPlace(stream, layer));
  if (!(weight > 0 && std::isfinite(weight))) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("calibration: weight is ", weight, ", expected a finite number above 0"));
  }
  MutexLock lock(&mu_);
  finished_.clear();
  weights_[stream][layer - options_.layer_begin] = weight;
  return OkStatus();
}

bool Calibrator::has_metric() const {
  for (const auto& stream : metrics_) {
    for (const std::vector<float>& head : stream)
      if (!head.empty()) return true;
  }
  return false;
}

std::vector<float> Calibrator::MetricOf(const Sums& sums) const {
  if (!has_metric()) return {};
  const size_t heads = options_.head_end - options_.head_begin, dim = model_->head_dim(sums.stream);
  std::vector<float> all;
  for (size_t i = (sums.layer_begin - options_.layer_begin) * heads;
       i < (sums.layer_end - options_.layer_begin) * heads; ++i) {
    const std::vector<float>& head = metrics_[sums.stream][i];
    if (!head.empty()) {
      all.insert(all.end(), head.begin(), head.end());
      continue;
    }
    for (size_t row = 0; row < dim; ++row) {
      all.push_back(1.0f);
      all.insert(all.end(), dim - row - 1, 0.0f);
    }
  }
  return all;
}

float Calibrator::AmplitudeOf(const Sums& sums, uint32_t layer, double variance) const {
  // Without a metric: layers of little variance would get no bits from errors counted as they are, and too
  // many from errors relative to their deviation. The root of it lies between, and measured better than both.
  const double base = has_metric() ? 1 : 1 / std::sqrt(std::sqrt(std::max(variance, kLeastVariance)));
  double logs = 0, count = 0;
  for (const std::vector<float>& stream : weights_) {
    for (const float weight : stream) {
      if (weight == 0) continue;
      logs += std::log(double{weight});
      ++count;
    }
  }
  const float own = weights_[sums.stream][layer - options_.layer_begin];
  if (own == 0) return static_cast<float>(base);
  const double relative = std::clamp(double{own} / std::exp(logs / count), 1 / kWeightMost, kWeightMost);
  return static_cast<float>(base * std::sqrt(relative));
}

std::vector<float> Calibrator::SampledRows(const Sums& sums, const ProfileGroup& group) const {
  const size_t width = sums.width(), dim = model_->head_dim(sums.stream);
  std::vector<float> rows(sample_.rows() * width);
  for (size_t r = 0; r < sample_.rows(); ++r) {
    const uint16_t* kept = sample_.Row(r) + sums.sample_column;
    for (size_t c = 0; c < width; ++c) {
      rows[r * width + c] =
          (kernels::F16ToF32(kept[c]) + (sums.shift[c] - group.mean[c])) * group.amplitude[c / sums.channels];
    }
  }
  std::vector<float> turned(group.forward.empty() ? 0 : sample_.rows() * dim);
  for (size_t c = 0; c < width && !group.forward.empty(); c += dim) {
    blas::Multiply(sample_.rows(), dim, dim, {rows.data() + c, width},
                   {group.forward.data() + c * dim, dim, /*transposed=*/true}, turned.data(), dim);
    for (size_t r = 0; r < sample_.rows(); ++r)
      std::copy_n(turned.data() + r * dim, dim, rows.data() + r * width + c);
  }
  return rows;
}

}  // namespace kvt
