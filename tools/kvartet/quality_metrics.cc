#include "kvartet/quality_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kvt::cli {
namespace {

// The 97.5 % quantile of Student's t. Beyond the table the expansion about the normal quantile is right to
// four digits.
double StudentQuantile(size_t freedom) {
  constexpr std::array<double, 10> kSmall = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                             2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (freedom <= kSmall.size()) return kSmall[freedom - 1];
  constexpr double kZ = 1.959964;
  const double z3 = kZ * kZ * kZ;
  const double z5 = z3 * kZ * kZ;
  const double z7 = z5 * kZ * kZ;
  const double n = static_cast<double>(freedom);
  return kZ + (z3 + kZ) / (4 * n) + (5 * z5 + 16 * z3 + 3 * kZ) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * kZ) / (384 * n * n * n);
}

}  // namespace

double LogSumExp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

double KlDivergence(std::span<const float> full, std::span<const float> other) {
  const double full_sum = LogSumExp(full);
  const double other_sum = LogSumExp(other);
  double kl = 0;
  for (size_t i = 0; i < full.size(); ++i) {
    const double log_full = full[i] - full_sum;
    kl += std::exp(log_full) * (log_full - (other[i] - other_sum));
  }
  // Rounding may take a divergence of nearly 0 below it; a NaN stays.
  return kl < 0 ? 0 : kl;
}

double NegativeLogLikelihood(std::span<const float> logits, int32_t token) {
  return LogSumExp(logits) - logits[static_cast<size_t>(token)];
}

double PerplexityChangePercent(double full_sum, double other_sum, size_t tokens) {
  return 100 * std::expm1((other_sum - full_sum) / static_cast<double>(tokens));
}

double Mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<Interval> Interval95(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double n = static_cast<double>(values.size());
  const double half = StudentQuantile(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return Interval{mean - half, mean + half};
}

double WholeRatio(const Sizes& sizes) {
  return static_cast<double>(sizes.raw) / static_cast<double>(sizes.frame);
}

double CodedRatio(const Sizes& sizes) {
  return static_cast<double>(sizes.raw - sizes.exempt) / static_cast<double>(sizes.frame - sizes.exempt);
}

double AmortisedRatio(const Sizes& sizes, uint64_t measured, uint64_t profile_bytes, double contexts) {
  const double count = static_cast<double>(measured);
  const double raw = static_cast<double>(sizes.raw) / count;
  const double frame = static_cast<double>(sizes.frame) / count;
  return raw * contexts / (frame * contexts + static_cast<double>(profile_bytes));
}

}  // namespace kvt::cli
