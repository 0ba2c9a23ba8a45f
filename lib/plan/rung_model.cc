#include "plan/rung_model.h"

#include <algorithm>
#include <cmath>

namespace kvt {
namespace {

// How far off rates and bandwidth may be before anything was observed, and the seconds that nobody told of.
constexpr Correction kPriorDeviation = {0.5, 0.2, 0.002};
// Of a measured time, relative: what no correction explains.
constexpr double kNoise = 0.05;
// What each observation of any rung adds of the first doubt.
constexpr double kForget = 0.0002;

// The seconds that each correction is multiplied by when `longest` (0 encode, 1 send, 2 decode) is the stage
// that others wait for.
Correction Slopes(const StageTimes& stages, int longest) {
  const double n = stages.segments, more = n - 1;
  const double encode = stages.encode * (1 + (longest == 0 ? more : 0)) / n;
  const double send = stages.send * (1 + (longest == 1 ? more : 0)) / n;
  const double decode = stages.decode * (1 + (longest == 2 ? more : 0)) / n;
  return {encode + decode, send, 1};
}

int Longest(const StageTimes& stages, const Correction& correction) {
  const double codec = std::max(correction[0], stages.codec_least),
               link = std::max(correction[1], kLeastFactor);
  const std::array<double, 3> times = {stages.encode * codec, stages.send * link, stages.decode * codec};
  return static_cast<int>(std::max_element(times.begin(), times.end()) - times.begin());
}

double Dot(const Correction& a, const Correction& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

}  // namespace

double TransferTime(const StageTimes& stages, const Correction& correction) {
  const Correction slopes = Slopes(stages, Longest(stages, correction));
  // Bounded as a sum: where all transfers have one size, only the sum of the two is known, and the constant
  // may well be below 0.
  const double codec = std::max(correction[0] * slopes[0] + correction[2], stages.codec_least * slopes[0]);
  return codec + std::max(correction[1], kLeastFactor) * slopes[1];
}

RungModel::RungModel(const Correction& mean) : mean_(mean), covariance_{} {
  for (size_t i = 0; i < 3; ++i) covariance_[i][i] = kPriorDeviation[i] * kPriorDeviation[i];
}

Correction RungModel::Draw(const std::array<double, 3>& normal) const {
  // Cholesky; the covariance is positive definite, its last bits may say otherwise.
  Matrix root = {};
  Correction drawn = mean_;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double left = covariance_[i][j];
      for (size_t k = 0; k < j; ++k) left -= root[i][k] * root[j][k];
      root[i][j] = i == j ? std::sqrt(std::max(left, 0.0)) : root[j][j] > 0 ? left / root[j][j] : 0;
      drawn[i] += root[i][j] * normal[j];
    }
  }
  return drawn;
}

void RungModel::Observe(const StageTimes& stages, double seconds) {
  const double noise = kNoise * seconds;
  Correction best_mean = mean_, best_gain = {}, best_slopes = {};
  double best_surprise = 0;
  bool found = false;
  // Which stage the others waited for is not measured: the least surprising that agrees with itself counts.
  for (int longest = 0; longest < (stages.segments > 1 ? 3 : 1); ++longest) {
    const Correction slopes = Slopes(stages, longest);
    Correction gain;
    for (size_t i = 0; i < 3; ++i) gain[i] = Dot(covariance_[i], slopes);
    const double variance = Dot(slopes, gain) + noise * noise;
    const double wrong = seconds - Dot(slopes, mean_), surprise = wrong * wrong / variance;
    Correction mean = mean_;
    for (size_t i = 0; i < 3; ++i) {
      gain[i] /= variance;
      mean[i] += gain[i] * wrong;
    }
    const bool agrees = stages.segments == 1 || Longest(stages, mean) == longest;
    if (!agrees || (found && surprise >= best_surprise)) continue;
    found = true;
    best_mean = mean;
    best_gain = gain;
    best_slopes = slopes;
    best_surprise = surprise;
  }
  if (!found) return;
  mean_ = best_mean;
  Correction spread;
  for (size_t i = 0; i < 3; ++i) spread[i] = Dot(covariance_[i], best_slopes);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) covariance_[i][j] -= best_gain[i] * spread[j];
}

void RungModel::Forget() {
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      const double prior = i == j ? kPriorDeviation[i] * kPriorDeviation[i] : 0;
      covariance_[i][j] += kForget * (prior - covariance_[i][j]);
    }
  }
}

}  // namespace kvt
