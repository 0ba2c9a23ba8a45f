// The file that an interrupted calibration goes on from. Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_CALIBRATION_STATE_H_
#define KVARTET_TOOLS_KVARTET_CALIBRATION_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvartet/library.h"

namespace kvt::cli {

// Beside what the library keeps.
struct CalibrationSums {
  std::vector<uint8_t> metric;  // as Metric::Save gives it; empty without one
  std::vector<float> weights;   // of K's layers, then of V's; empty until they are measured
};

struct RestoredCalibration {
  Calibration calibration;
  CalibrationSums sums;
};

class CalibrationState {
 public:
  // `identity` is of all that decides the profile. Model and path are borrowed. Throws Failure when the path
  // cannot be written.
  CalibrationState(const Model& model, const KeyBytes& identity, const std::string& path);

  void Save(const Calibration& calibration, const CalibrationSums& sums);
  // Nothing when there is no file. Throws Failure when it is damaged, of another model or identity, or
  // something else.
  std::optional<RestoredCalibration> Restore() const;

 private:
  const Model& model_;
  const KeyBytes identity_;
  const std::string& path_;
  std::vector<uint8_t> buffer_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_CALIBRATION_STATE_H_
