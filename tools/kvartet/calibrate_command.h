// `kvartet calibrate`: a profile of texts, written to a file.
#ifndef KVARTET_TOOLS_KVARTET_CALIBRATE_COMMAND_H_
#define KVARTET_TOOLS_KVARTET_CALIBRATE_COMMAND_H_

#include <string>

#include "kvartet/calibration.h"

namespace kvt::cli {

struct CalibrateCommand {
  CalibrationSettings settings;
  std::string model, deps;
  std::string out;    // empty: where `kvartet demo` finds it
  std::string state;  // empty: the profile's path and ".state"
  std::string json;
};

// Returns the exit status. Throws Failure.
int RunCalibrate(const CalibrateCommand& command);

// The texts that bootstrap collects; throws Failure when they are not there.
std::vector<std::string> DefaultTexts(const std::string& deps);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_CALIBRATE_COMMAND_H_
