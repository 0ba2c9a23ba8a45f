// From the sums and the sample to a profile: amplitudes, bases, deviations, books.
#include <algorithm>
#include <cmath>

#include "codec/profile_layout.h"
#include "codec/transform/blas.h"
#include "codec/transform/books.h"
#include "codec/transform/calibrator.h"
#include "codec/transform/plan.h"
#include "cpu/transform_rows.h"

namespace kvt {
namespace {

// Books are fitted on what these ratios give each width of code.
constexpr std::array<uint32_t, 4> kFittedRatios = {4, 8, 16, 32};
constexpr int kFitRounds = 2;
constexpr size_t kSamplesOfBook = 200000;

// The sample's components: a row a component, one float a sampled row, and what is needed to plan bits.
struct Projected {
  std::vector<float> values;
  size_t components = 0, rows = 0;
};

Distortions DistortionsOf(const std::array<ProfileBook, kBookBitsMax + 1>& books) {
  Distortions distortions;
  for (uint32_t bits = 0; bits <= kBookBitsMax; ++bits) distortions[bits] = books[bits].distortion;
  return distortions;
}

// Standardised components divided by their token's gain, by the bits that a plan gives them.
void AddSamples(const Projected& projected, const std::vector<float>& deviations,
                const std::vector<uint8_t>& bits, std::array<std::vector<float>, kBookBitsMax + 1>* samples) {
  if (bits.empty()) return;
  const size_t rows = projected.rows, leading = (bits.size() + 1) / 2;
  std::vector<float> squares(rows, 0.0f), factors(rows);
  for (size_t j = 0; j < leading; ++j)
    kernels::AddSquares(projected.values.data() + j * rows, rows, 1 / deviations[j], squares.data());
  for (size_t t = 0; t < rows; ++t) {
    const float mean = squares[t] / static_cast<float>(leading);
    factors[t] = 1 / std::max(std::sqrt(mean), 0x1p-14f);
  }
  for (size_t j = 0; j < bits.size(); ++j) {
    const float* values = projected.values.data() + j * rows;
    for (size_t t = 0; t < rows; ++t) (*samples)[bits[j]].push_back(values[t] * factors[t] / deviations[j]);
  }
}

// Every n-th, so that at most kSamplesOfBook are left.
void Thin(std::vector<float>* samples) {
  const size_t step = samples->size() / kSamplesOfBook + 1;
  size_t kept = 0;
  for (size_t i = 0; i < samples->size(); i += step) (*samples)[kept++] = (*samples)[i];
  samples->resize(kept);
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
  group->amplitude.assign(sums.layer_end - sums.layer_begin, 1.0f);
  *basis = sums.outer;
  for (size_t row = 0; row < width; ++row) {
    float* values = basis->data() + row * width;
    for (size_t c = 0; c <= row; ++c)
      values[c] = static_cast<float>(double{values[c]} / tokens - mean[row] * mean[c]);
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

  std::vector<std::vector<float>> deviations;
  std::vector<std::vector<uint16_t>> bases;
  std::vector<Projected> projected;
  uint64_t width = 0;
  for (const Sums& sums : sums_) {
    ProfileGroup& group = facts.groups.emplace_back();
    std::vector<float> basis;
    KVT_RETURN_IF_ERROR(Analyse(sums, &group, &basis));
    width += sums.width();
    std::vector<uint16_t>& halves = bases.emplace_back(basis.size());
    for (size_t i = 0; i < basis.size(); ++i) halves[i] = kernels::F32ToF16(basis[i]);
    // The sample, as an encoder would see it.
    Projected& own = projected.emplace_back();
    own.components = group.components();
    own.rows = sample_.rows();
    own.values.resize(own.components * own.rows);
    std::vector<float> rows(own.rows * sums.width());
    for (size_t r = 0; r < own.rows; ++r) {
      const uint16_t* kept = sample_.Row(r) + sums.sample_column;
      for (size_t c = 0; c < sums.width(); ++c)
        rows[r * sums.width() + c] = kernels::F16ToF32(kept[c]) + (sums.shift[c] - group.mean[c]);
    }
    blas::Multiply(own.components, own.rows, sums.width(), {basis.data(), sums.width()},
                   {rows.data(), sums.width(), /*transposed=*/true}, own.values.data(), own.rows);
    deviations.push_back(group.deviation);
  }

  std::vector<float> normal = NormalSamples();
  for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) facts.books[bits] = FitBook(bits, &normal);
  for (int round = 0; round < kFitRounds; ++round) {
    std::array<std::vector<float>, kBookBitsMax + 1> samples;
    for (const uint32_t ratio : kFittedRatios) {
      if (ratio < facts.ratio_min) continue;
      const BitPlan plan = PlanBits(deviations, DistortionsOf(facts.books),
                                    ComponentBudget(width, facts.element, sums_.size(), ratio));
      for (size_t g = 0; g < projected.size(); ++g)
        AddSamples(projected[g], deviations[g], plan.bits[g], &samples);
    }
    float before = 1;
    for (uint32_t bits = 1; bits <= kBookBitsMax; ++bits) {
      // With too few samples the normal distribution's book stays.
      if (samples[bits].size() >= size_t{64} << bits) {
        Thin(&samples[bits]);
        facts.books[bits] = FitBook(bits, &samples[bits]);
      }
      facts.books[bits].distortion = std::min(facts.books[bits].distortion, before);
      before = facts.books[bits].distortion;
    }
  }

  const BitPlan widest = PlanBits(deviations, DistortionsOf(facts.books),
                                  ComponentBudget(width, facts.element, sums_.size(), facts.ratio_min));
  for (size_t g = 0; g < facts.groups.size(); ++g) {
    ProfileGroup& group = facts.groups[g];
    group.deviation.resize(std::max<size_t>(widest.bits[g].size(), 1));
    group.basis = reinterpret_cast<const uint8_t*>(bases[g].data());
  }
  return WriteProfile(facts);
}

}  // namespace kvt
