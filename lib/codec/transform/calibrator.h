// Calibrator: gathers means, covariances and a sample of rows from views of documents, and makes a profile of
// them.
//
// A view's rows enter in the same pieces however many views came before, so that a calibration that was saved
// and restored gives the same profile, byte for byte. Thread-safe: one call at a time computes, others wait.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_CALIBRATOR_H_
#define KVARTET_LIB_CODEC_TRANSFORM_CALIBRATOR_H_

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/handles.h"
#include "base/mutex.h"
#include "codec/profile.h"
#include "codec/transform/sample.h"
#include "model/view.h"

namespace kvt {

struct CalibrationOptions {
  uint32_t group_layers = 0;  // 0: a third of the layers, rounded up
  uint32_t ratio_min = kRatioMin;
  uint32_t layer_begin = 0, layer_end = 0;  // 0 and 0: all
  uint32_t head_begin = 0, head_end = 0;    // 0 and 0: all
};

struct CalibrationInfo {
  uint64_t tokens = 0;
  uint64_t nonfinite = 0;
  uint32_t documents = 0;
};

class Calibrator {
 public:
  // Tokens at these first positions attract attention whatever they are (sinks) and do not enter.
  static constexpr uint64_t kExemptPositions = 4;
  static constexpr uint64_t kTokensMin = 64;

  static StatusOr<std::shared_ptr<Calibrator>> Create(std::shared_ptr<const Model> model,
                                                      const CalibrationOptions& options);
  // What Save wrote. KVT_ERR_CORRUPT; KVT_ERR_VERSION; KVT_ERR_MISMATCH (of another model).
  static StatusOr<std::shared_ptr<Calibrator>> Restore(std::shared_ptr<const Model> model, Bytes saved);

  const Model& model() const { return *model_; }
  CalibrationInfo Info() const;
  // Adds one document's tokens [begin, begin + count) of a view. `importance`: of each, or null. Computes.
  Status Add(const View& view, uint64_t begin, uint64_t count, const int8_t* importance = nullptr);
  // See kvt_calibration_set_metric and kvt_calibration_set_weight.
  Status SetMetric(uint32_t stream, uint32_t layer, uint32_t head, std::span<const float> matrix);
  Status SetWeight(uint32_t stream, uint32_t layer, float weight);
  std::string Save() const;
  // The profile of all that was added. Computes, and keeps the result until the next Add.
  StatusOr<std::string> Finish() const;

 private:
  // Of one stream of one group of layers; values are relative to `shift`, which keeps sums small.
  struct Sums {
    uint32_t stream = 0, layer_begin = 0, layer_end = 0;
    size_t channels = 0;       // of a layer
    size_t sample_column = 0;  // first of this group's in a sampled row
    std::vector<float> shift;
    std::vector<double> sum;
    std::vector<float> outer;  // lower triangle of a square

    size_t width() const { return shift.size(); }
  };

  Calibrator(std::shared_ptr<const Model> model, const CalibrationOptions& options);

  // Whether so many rows can have these sums.
  static bool IsPlausible(const Sums& sums, uint64_t tokens);
  static Status CheckOptions(const Model& model, CalibrationOptions* options);
  Status CheckView(const View& view, uint64_t begin, uint64_t count) const;
  // Rows of `count` tokens, RoPE undone, relative to `mean`, into tile_.
  void LoadTile(const View& view, const Sums& sums, uint64_t begin, size_t count, const float* mean,
                uint64_t* nonfinite) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddTile(const View& view, uint64_t begin, size_t count, const int8_t* importance)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckPlace(uint32_t stream, uint32_t layer) const;
  bool has_metric() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A group's metric, all heads, packed; empty when none was set.
  std::vector<float> MetricOf(const Sums& sums) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What errors of a layer are multiplied by.
  float AmplitudeOf(const Sums& sums, uint32_t layer, double variance) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The sample's rows in a group's metric.
  std::vector<float> SampledRows(const Sums& sums, const ProfileGroup& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Eigenvectors of a group's covariance, kept in `basis` (a row a component).
  Status Analyse(const Sums& sums, ProfileGroup* group, std::vector<float>* basis) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<std::string> MakeProfile() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <typename Archive>
  void Transfer(Archive* archive) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<const Model> model_;
  const CalibrationOptions options_;
  mutable Mutex mu_;
  CalibrationInfo info_ ABSL_GUARDED_BY(mu_);
  std::vector<Sums> sums_ ABSL_GUARDED_BY(mu_);
  // By stream, then layer (then head): roots, packed, and weights; empty and 0 where none was set.
  std::array<std::vector<std::vector<float>>, 2> metrics_ ABSL_GUARDED_BY(mu_);
  std::array<std::vector<float>, 2> weights_ ABSL_GUARDED_BY(mu_);
  RowSample sample_ ABSL_GUARDED_BY(mu_);
  std::vector<float> tile_ ABSL_GUARDED_BY(mu_);
  mutable std::string finished_ ABSL_GUARDED_BY(mu_);
};

template <>
struct HandleTraits<Calibrator> {
  static constexpr HandleType kType = HandleType::kCalibration;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_CALIBRATOR_H_
