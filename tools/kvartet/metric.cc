#include "kvartet/metric.h"

#include <algorithm>
#include <cstring>

#include "kvartet/half.h"

namespace kvt::cli {
namespace {

constexpr size_t kSamples = 4;     // key positions that a query is seen from
constexpr int32_t kValueStep = 4;  // every so many tokens' values enter

// Numbers that only `state` decides (splitmix64).
uint64_t Random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// sum += x x^T
void AddOuter(size_t n, const float* x, float* sum) {
  for (size_t i = 0; i < n; ++i) {
    float* row = sum + i * n;
    const float factor = x[i];
    for (size_t j = 0; j < n; ++j) row[j] += factor * x[j];
  }
}

void AddTo(const std::vector<float>& from, std::vector<double>* to) {
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += double{from[i]};
}

}  // namespace

void SetMetric(const Calibration& calibration, const HeadMatrices& matrices) {
  for (size_t stream = 0; stream < matrices.streams.size(); ++stream) {
    for (size_t i = 0; i < matrices.streams[stream].size(); ++i) {
      const std::vector<float>& matrix = matrices.streams[stream][i];
      Check(kvt_calibration_set_metric(
                calibration.get(), static_cast<uint32_t>(stream), static_cast<uint32_t>(i / matrices.heads),
                static_cast<uint32_t>(i % matrices.heads), matrix.data(), matrix.size()),
            "kvt_calibration_set_metric");
    }
  }
}

Metric::Metric(const engine::Geometry& geometry)
    : layers_(static_cast<size_t>(geometry.kv.layers)),
      kv_heads_(static_cast<size_t>(geometry.kv.kv_heads)),
      group_(static_cast<size_t>(geometry.heads / geometry.kv.kv_heads)),
      dim_k_(static_cast<size_t>(geometry.kv.head_dim_k)),
      dim_v_(static_cast<size_t>(geometry.kv.head_dim_v)),
      width_(static_cast<size_t>(geometry.width)),
      frame_(geometry.rope, dim_k_),
      heads_(layers_ * kv_heads_),
      residual_(layers_, 0.0) {
  for (Head& head : heads_) {
    head.queries.assign(dim_k_ * dim_k_, 0.0);
    head.values.assign(dim_v_ * dim_v_, 0.0);
    head.value.assign(dim_v_, 0.0);
    head.gram.assign(dim_v_ * dim_v_, 0.0);
  }
}

void Metric::SetProjection(size_t layer, std::span<const float> matrix) {
  const size_t columns = kv_heads_ * group_ * dim_v_;
  std::vector<float> sum(dim_v_ * dim_v_);
  for (size_t head = 0; head < kv_heads_; ++head) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (size_t row = 0; row < width_; ++row) {
      const float* slices = matrix.data() + row * columns + head * group_ * dim_v_;
      for (size_t query = 0; query < group_; ++query) AddOuter(dim_v_, slices + query * dim_v_, sum.data());
    }
    At(layer, head).gram.assign(sum.begin(), sum.end());
  }
}

void Metric::Add(const engine::Captured& captured, const engine::KvBlob& blob, uint64_t seed) {
  AddQueries(captured, seed);
  AddValues(blob);
}

void Metric::AddQueries(const engine::Captured& captured, uint64_t seed) {
  const size_t first =
      static_cast<size_t>(std::lower_bound(captured.positions.begin(), captured.positions.end(), kSinks) -
                          captured.positions.begin());
  std::vector<KeyFrame::Turn> turns;
  turns.reserve((captured.rows() - first) * kSamples);
  for (size_t row = first; row < captured.rows(); ++row) {
    for (size_t i = 0; i < kSamples; ++i) {
      const auto before = static_cast<uint64_t>(captured.positions[row]) + 1;
      turns.push_back(frame_.At(static_cast<int32_t>(Random(&seed) % before)));
    }
  }
  std::vector<float> sum(dim_k_ * dim_k_), query(dim_k_);
  for (size_t layer = 0; layer < layers_; ++layer) {
    for (size_t row = first; row < captured.rows(); ++row)
      residual_[layer] += double{captured.Residual(layer, row)};
    for (size_t head = 0; head < kv_heads_; ++head) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (size_t row = first; row < captured.rows(); ++row) {
        for (size_t i = 0; i < group_; ++i) {
          const float* seen = captured.Query(layer, head * group_ + i, row);
          for (size_t k = 0; k < kSamples; ++k) {
            std::copy(seen, seen + dim_k_, query.begin());
            frame_.TurnBack(turns[(row - first) * kSamples + k], query.data());
            AddOuter(dim_k_, query.data(), sum.data());
          }
        }
      }
      AddTo(sum, &At(layer, head).queries);
    }
  }
  const auto rows = static_cast<double>(captured.rows() - first);
  residuals_ += rows;
  queries_ += rows * static_cast<double>(group_ * kSamples);
}

void Metric::AddValues(const engine::KvBlob& blob) {
  const int32_t begin = std::max(kSinks - blob.pos_begin(), 0);
  std::vector<float> sum(dim_v_ * dim_v_), value(dim_v_);
  for (size_t layer = 0; layer < layers_; ++layer) {
    const engine::RowView rows = blob.V(static_cast<int32_t>(layer));
    for (size_t head = 0; head < kv_heads_; ++head) {
      Head& to = At(layer, head);
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (int32_t token = begin; token < blob.tokens(); token += kValueStep) {
        ReadHead(rows, token, head, value);
        for (size_t i = 0; i < dim_v_; ++i) to.value[i] += double{value[i]};
        AddOuter(dim_v_, value.data(), sum.data());
      }
      AddTo(sum, &to.values);
    }
  }
  const int32_t entered = (std::max(blob.tokens() - begin, 0) + kValueStep - 1) / kValueStep;
  values_ += entered;
}

double Metric::ResidualSquare(size_t layer) const { return residual_[layer] / residuals_; }

std::vector<float> Metric::Scaled(const std::vector<double>& sum, double factor) const {
  std::vector<float> scaled(sum.size());
  for (size_t i = 0; i < sum.size(); ++i) scaled[i] = static_cast<float>(sum[i] * factor);
  return scaled;
}

std::vector<float> Metric::OfKeys(size_t layer, size_t head) const {
  const Head& sums = At(layer, head);
  double energy = 0;
  for (size_t i = 0; i < dim_v_; ++i) {
    for (size_t j = 0; j < dim_v_; ++j) {
      const double covariance =
          sums.values[i * dim_v_ + j] / values_ - sums.value[i] / values_ * (sums.value[j] / values_);
      energy += sums.gram[i * dim_v_ + j] * covariance;
    }
  }
  energy /= static_cast<double>(group_);
  return Scaled(sums.queries, energy / (queries_ * static_cast<double>(dim_k_) * ResidualSquare(layer)));
}

std::vector<float> Metric::OfValues(size_t layer, size_t head) const {
  return Scaled(At(layer, head).gram, 1 / ResidualSquare(layer));
}

HeadMatrices Metric::Matrices() const {
  HeadMatrices matrices{kv_heads_, {}};
  for (auto& stream : matrices.streams) stream.reserve(heads_.size());
  for (size_t layer = 0; layer < layers_; ++layer) {
    for (size_t head = 0; head < kv_heads_; ++head) {
      matrices.streams[0].push_back(OfKeys(layer, head));
      matrices.streams[1].push_back(OfValues(layer, head));
    }
  }
  return matrices;
}

template <class Self, class Body>
void Metric::ForSums(Self* self, const Body& body) {
  for (auto& head : self->heads_) {
    for (auto* sum : {&head.queries, &head.values, &head.value}) body(sum->data(), sum->size());
  }
  body(self->residual_.data(), self->residual_.size());
  for (auto* count : {&self->queries_, &self->values_, &self->residuals_}) body(count, size_t{1});
}

std::vector<uint8_t> Metric::Save() const {
  std::vector<uint8_t> saved;
  ForSums(this, [&](const double* sums, size_t count) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(sums);
    saved.insert(saved.end(), bytes, bytes + count * sizeof(double));
  });
  return saved;
}

bool Metric::Restore(std::span<const uint8_t> saved) {
  if (saved.size() != Save().size()) return false;
  ForSums(this, [&](double* sums, size_t count) {
    std::memcpy(sums, saved.data(), count * sizeof(double));
    saved = saved.subspan(count * sizeof(double));
  });
  return true;
}

}  // namespace kvt::cli
