// RungModel: how long a transfer takes with one rung, learnt from measured times.
//
// Not thread-safe.
#ifndef KVARTET_LIB_PLAN_RUNG_MODEL_H_
#define KVARTET_LIB_PLAN_RUNG_MODEL_H_

#include <array>
#include <cstdint>

namespace kvt {

// A stage is never predicted to take less than this share of its nominal time.
inline constexpr double kLeastFactor = 0.4;

// Nominal times of a transfer's stages, in seconds, and the parts that overlap.
struct StageTimes {
  double encode = 0, send = 0, decode = 0;
  uint32_t segments = 1;
  double codec_least = kLeastFactor;  // of encode and decode
};

// Factors on the codec's stages and on the link's, and seconds on top.
using Correction = std::array<double, 3>;

// The time of a transfer: stages one after another for the first segment, and the longest of them for each of
// the others.
double TransferTime(const StageTimes& stages, const Correction& correction);

class RungModel {
 public:
  explicit RungModel(const Correction& mean = {1, 1, 0});

  const Correction& mean() const { return mean_; }
  // A correction that what was observed makes plausible; `normal` are three draws from a normal distribution.
  Correction Draw(const std::array<double, 3>& normal) const;
  // Learns from a transfer that took `seconds`.
  void Observe(const StageTimes& stages, double seconds);
  // Makes what is known a little less sure, as time passes.
  void Forget();

 private:
  using Matrix = std::array<std::array<double, 3>, 3>;

  Correction mean_;
  Matrix covariance_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_PLAN_RUNG_MODEL_H_
