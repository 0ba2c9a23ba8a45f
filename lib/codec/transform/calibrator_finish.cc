// From the sums and the sample to a profile: amplitudes, bases, deviations, books.
#include <algorithm>
#include <cmath>

#include "codec/profile_layout.h"
#include "codec/transform/blas.h"
#include "codec/transform/books.h"
#include "codec/transform/calibrator.h"
#include "codec/transform/dense.h"
#include "codec/transform/dense_fit.h"
#include "codec/transform/metric.h"
#include "codec/transform/plan.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

constexpr int kFitRounds = 2;
constexpr size_t kSamplesOfBook = 200000;

// The sample's components: a row a component, one float a sampled row, and what is needed to plan bits.
struct Projected {
  std::vector<float> values;
  size_t components = 0, rows = 0;
};

using Samples = std::array<std::vector<float>, kBookBitsMax + 1>;

// Calls body(component, values) with the standardised components of the sample divided by their rows' gains.
template <typename Body>
void ForComponents(const Projected& projected, const std::vector<float>& deviations, size_t kept,
                   const Body& body) {
  if (kept == 0) return;
  const size_t rows = projected.rows, leading = (kept + 1) / 2;
  std::vector<float> squares(rows, 0.0f), factors(rows), values(rows);
  for (size_t j = 0; j < leading; ++j)
    kernels::AddSquares(projected.values.data() + j * rows, rows, 1 / deviations[j], squares.data());
  for (size_t t = 0; t < rows; ++t) {
    const float mean = squares[t] / static_cast<float>(leading);
    factors[t] = 1 / std::max(std::sqrt(mean), 0x1p-14f);
  }
  for (size_t j = 0; j < kept; ++j) {
    const float* from = projected.values.data() + j * rows;
    for (size_t t = 0; t < rows; ++t) values[t] = from[t] * factors[t] / deviations[j];
    body(j, values);
  }
}

uint64_t CountEscapes(const std::vector<float>& values, const ProfileBook& book, float limit) {
  const std::vector<float> bounds = BoundsOf(book.levels);
  uint64_t escapes = 0;
  for (const float value : values) {
    const auto level = std::upper_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    escapes += std::fabs(value - book.levels[static_cast<size_t>(level)]) > limit;
  }
  return escapes;
}

// Every n-th, so that at most kSamplesOfBook are left.
void Thin(std::vector<float>* samples) {
  const size_t step = samples->size() / kSamplesOfBook + 1;
  size_t kept = 0;
  for (size_t i = 0; i < samples->size(); i += step) (*samples)[kept++] = (*samples)[i];
  samples->resize(kept);
}

// Calls body(bits, escape limit, values) with the sample's components as PlanBits plans them for a ratio.
template <typename Body>
void ForPlan(const ProfileFacts& facts, const std::vector<Projected>& projected, uint32_t ratio,
             const Body& body) {
  const BitPlan plan = PlanBits(facts, WholeBudget(facts, ratio));
  for (size_t g = 0; g < projected.size(); ++g) {
    const std::vector<float>& deviations = facts.groups[g].deviation;
    ForComponents(projected[g], deviations, plan.bits[g].size(),
                  [&](size_t j, const std::vector<float>& values) {
                    const uint8_t bits = plan.bits[g][j];
                    body(bits, EscapeLimit(plan.gain, deviations[j], facts.books[bits]), values);
                  });
  }
}

// Computed once: the same for every calibration.
const Books& NormalBooks() {
  static const Books books = [] {
    Books fitted;
    std::vector<float> normal = NormalSamples();
    for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) fitted[bits] = FitBook(bits, &normal);
    return fitted;
  }();
  return books;
}

// Fits each width's book on the components that have it at the measured ratios, beginning with the normal
// distribution's books, and counts escapes.
void FitBooks(const std::vector<Projected>& projected, ProfileFacts* facts) {
  facts->books = NormalBooks();
  for (int round = 0; round < kFitRounds; ++round) {
    Samples samples;
    for (const uint32_t ratio : kMeasuredRatios) {
      if (ratio < facts->ratio_min) continue;
      ForPlan(*facts, projected, ratio, [&](uint8_t bits, float, const std::vector<float>& values) {
        samples[bits].insert(samples[bits].end(), values.begin(), values.end());
      });
    }
    float before = 1;
    for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
      ProfileBook& book = facts->books[bits];
      // With too few samples the normal distribution's book stays.
      if (samples[bits].size() >= size_t{64} << bits) {
        Thin(&samples[bits]);
        book = FitBook(bits, &samples[bits]);
      }
      book.distortion = std::min(book.distortion, before);
      before = book.distortion;
    }
  }
  for (size_t i = 0; i < kMeasuredRatios.size(); ++i) {
    uint64_t escapes = 0;
    ForPlan(*facts, projected, kMeasuredRatios[i],
            [&](uint8_t bits, float limit, const std::vector<float>& values) {
              escapes += CountEscapes(values, facts->books[bits], limit);
            });
    const uint64_t budget = std::max<uint64_t>(WholeBudget(*facts, kMeasuredRatios[i]), 1);
    const uint64_t part = escapes * kEscapeBits * kMillion / (projected[0].rows * budget);
    facts->escapes[i] = static_cast<uint32_t>(std::min<uint64_t>(part, kMillion / 2));
  }
}

// Makes both ways of a group's metric, and its covariance (lower triangle) that of the turned rows.
void TurnCovariance(size_t dim, ProfileGroup* group, std::vector<float>* covariance) {
  const size_t width = group->width(), packed = PackedSize(dim);
  for (size_t row = 0; row < width; ++row) {
    for (size_t c = 0; c < row; ++c) (*covariance)[c * width + row] = (*covariance)[row * width + c];
  }
  group->forward.resize(width * dim);
  group->backward.resize(width * dim);
  std::vector<float> turned(width * dim);
  for (size_t c = 0; c < width; c += dim) {
    float* root = group->forward.data() + c * dim;
    UnpackMetric(group->metric.data() + c / dim * packed, dim, root, group->backward.data() + c * dim);
    float* rows = covariance->data() + c * width;
    blas::Multiply(dim, width, dim, {root, dim}, {rows, width}, turned.data(), width);
    std::copy_n(turned.data(), turned.size(), rows);
  }
  for (size_t c = 0; c < width; c += dim) {
    const float* root = group->forward.data() + c * dim;
    blas::Multiply(width, dim, dim, {covariance->data() + c, width}, {root, dim, /*transposed=*/true},
                   turned.data(), dim);
    for (size_t row = 0; row < width; ++row)
      std::copy_n(turned.data() + row * dim, dim, covariance->data() + row * width + c);
  }
}

}  // namespace

Status Calibrator::Analyse(const Sums& sums, ProfileGroup* group, std::vector<float>* basis) const {
  const size_t width = sums.width();
  const auto tokens = static_cast<double>(info_.tokens);
  group->stream = sums.stream;
  group->layer_begin = sums.layer_begin;
  group->layer_end = sums.layer_end;
  std::vector<double> mean(width);
  for (size_t c = 0; c < width; ++c) {
    mean[c] = sums.sum[c] / tokens;
    group->mean.push_back(static_cast<float>(double{sums.shift[c]} + mean[c]));
  }
  *basis = sums.outer;
  for (size_t row = 0; row < width; ++row) {
    float* values = basis->data() + row * width;
    for (size_t c = 0; c <= row; ++c)
      values[c] = static_cast<float>(double{values[c]} / tokens - mean[row] * mean[c]);
  }
  for (uint32_t layer = sums.layer_begin; layer < sums.layer_end; ++layer) {
    const size_t begin = (layer - sums.layer_begin) * sums.channels;
    double energy = 0;
    for (size_t c = begin; c < begin + sums.channels; ++c) energy += double{(*basis)[c * width + c]};
    const double variance = energy / static_cast<double>(sums.channels);
    group->amplitude.push_back(std::clamp(AmplitudeOf(sums, layer, variance), kAmplitudeMin, kAmplitudeMax));
  }
  group->metric = MetricOf(sums);
  if (!group->metric.empty()) TurnCovariance(model_->head_dim(sums.stream), group, basis);
  for (size_t row = 0; row < width; ++row) {
    for (size_t c = 0; c <= row; ++c) {
      (*basis)[row * width + c] *=
          group->amplitude[row / sums.channels] * group->amplitude[c / sums.channels];
    }
  }
  std::vector<float> variances;
  KVT_RETURN_IF_ERROR(blas::Eigen(width, basis->data(), &variances));
  // What is below the precision of the floats is noise.
  const float least = std::max(variances[0] * 1e-9f, kDeviationMin * kDeviationMin);
  for (const float variance : variances) {
    if (!(variance > least) && !group->deviation.empty()) break;
    const float deviation = std::sqrt(std::max(variance, kDeviationMin * kDeviationMin));
    group->deviation.push_back(std::clamp(deviation, kDeviationMin, kDeviationMax));
  }
  basis->resize(group->components() * width);
  return OkStatus();
}

StatusOr<std::string> Calibrator::MakeProfile() const {
  ProfileFacts facts;
  facts.model = model_->fingerprint();
  facts.layer_begin = options_.layer_begin;
  facts.layer_end = options_.layer_end;
  facts.head_begin = options_.head_begin;
  facts.head_end = options_.head_end;
  facts.streams = model_->streams();
  facts.element = model_->element();
  for (uint32_t stream = 0; stream < facts.streams; ++stream) facts.dims[stream] = model_->head_dim(stream);
  facts.ratio_min = options_.ratio_min;
  facts.tokens = info_.tokens;
  facts.documents = info_.documents;

  std::vector<std::vector<uint16_t>> bases;
  std::vector<Projected> projected;
  for (const Sums& sums : sums_) {
    ProfileGroup& group = facts.groups.emplace_back();
    std::vector<float> basis;
    KVT_RETURN_IF_ERROR(Analyse(sums, &group, &basis));
    std::vector<uint16_t>& halves = bases.emplace_back(basis.size());
    for (size_t i = 0; i < basis.size(); ++i) halves[i] = kernels::F32ToF16(basis[i]);
    // The sample, as an encoder would see it.
    Projected& own = projected.emplace_back();
    own.components = group.components();
    own.rows = sample_.rows();
    own.values.resize(own.components * own.rows);
    const std::vector<float> rows = SampledRows(sums, group);
    blas::Multiply(own.components, own.rows, sums.width(), {basis.data(), sums.width()},
                   {rows.data(), sums.width(), /*transposed=*/true}, own.values.data(), own.rows);
  }

  FitBooks(projected, &facts);
  std::vector<DenseSample> samples;
  samples.reserve(projected.size());
  for (const Projected& own : projected) samples.push_back({own.values.data(), own.rows});
  FitDense(samples, sample_.importance_, &facts);
  const BitPlan widest = PlanBits(facts, CodeBudget(facts, facts.ratio_min));
  for (size_t g = 0; g < facts.groups.size(); ++g) {
    ProfileGroup& group = facts.groups[g];
    size_t kept = std::max<size_t>(widest.bits[g].size(), 1);
    if (facts.dense != nullptr)
      kept = std::max(kept, DenseKept(group, DenseStep(*facts.dense, DenseRatioMin(facts))));
    group.deviation.resize(kept);
    group.spread.resize(facts.dense == nullptr ? 0 : kept);
    group.leading = static_cast<uint32_t>(std::min<size_t>(group.leading, kept));
    group.basis = reinterpret_cast<const uint8_t*>(bases[g].data());
  }
  return WriteProfile(facts);
}

}  // namespace kvt
