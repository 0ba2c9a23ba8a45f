// The arithmetic of `kvartet quality`: how far one row of logits is from another, what a mean over documents
// is worth, and what the sizes of frames come to. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_METRICS_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kvt::cli {

// The natural logarithm of the sum of the exponentials, in double and safe from overflow.
double LogSumExp(std::span<const float> logits);

// KL(full || other) in nats of the distributions that two rows of logits of one length stand for: 0 when the
// rows are equal, never below. NaN when a logit is NaN.
double KlDivergence(std::span<const float> full, std::span<const float> other);

// Minus the logarithm of the probability that the logits give to `token`, in nats.
double NegativeLogLikelihood(std::span<const float> logits, int32_t token);

// How many percent the perplexity is above that of the full cache, from sums of negative log-likelihoods over
// the same `tokens` tokens.
double PerplexityChangePercent(double full_sum, double other_sum, size_t tokens);

double Mean(std::span<const double> values);

struct Interval {
  double low = 0;
  double high = 0;
};

// The 95 % interval of the mean by Student's t; nothing for fewer than two values. For a paired interval,
// give it the differences.
std::optional<Interval> Interval95(std::span<const double> values);

// Bytes of contexts: rows in the model's element type, those of them that were exempt from the codec, and
// whole frames.
struct Sizes {
  uint64_t raw = 0;
  uint64_t exempt = 0;
  uint64_t frame = 0;

  Sizes& operator+=(const Sizes& other) {
    raw += other.raw;
    exempt += other.exempt;
    frame += other.frame;
    return *this;
  }
};

// All bytes of the frame count.
double WholeRatio(const Sizes& sizes);

// Over the tokens that were coded: all bytes of the frame but the exempt rows count, that is codes, side
// information, headers and padding.
double CodedRatio(const Sizes& sizes);

// As WholeRatio for `contexts` contexts of the mean size of `measured` ones, which share one profile.
double AmortisedRatio(const Sizes& sizes, uint64_t measured, uint64_t profile_bytes, double contexts);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_METRICS_H_
