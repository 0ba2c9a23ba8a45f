// A profile for the calibrated codecs, made of texts by the engine: statistics of KV, what errors of it cost
// (metric.h), what layers are worth (layer_probes.h), and bases that fit all that.
//
// Documents enter in one order whatever the number of threads, so that texts, settings and engine alone
// decide the profile's bytes. What has entered is kept in a state file after each document; a run that finds
// one goes on from there, to the same bytes.
#ifndef KVARTET_TOOLS_KVARTET_CALIBRATION_H_
#define KVARTET_TOOLS_KVARTET_CALIBRATION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvartet/documents.h"
#include "kvartet/library.h"

namespace kvt::cli {

struct CalibrationSettings {
  std::vector<std::string> texts;  // paths; empty: those that bootstrap collects
  int32_t tokens = 33'000;         // that enter, or some more
  int32_t document_tokens = 0;     // of each document; 0: tokens / texts, 1,000 to 2,000
  int32_t jobs = 0;                // documents computed at the same time; 0: one a core, at most 8
  uint32_t ratio_min = 8;          // lowest ratio that the profile is for
  uint32_t group_layers = 0;       // layers that share a basis; 0: the library's default
  bool metric = true;              // learn what errors cost; where the model does not show it, do without
  bool weights = true;             // measure what layers are worth
};

// Documents in the order in which they enter.
struct CalibrationPlan {
  CalibrationSettings settings;
  std::vector<TextDocument> documents;
  KeyBytes identity;  // of model, documents and settings

  // A name for the profile's file.
  std::string FileName(const Model& model) const;
};

// Reads the texts. Takes the first document of each text, then the second of each, until there are enough
// tokens. Throws Failure: as ReadDocuments, and when all texts together are too short.
CalibrationPlan PlanCalibration(const engine::Engine& engine, const Model& model,
                                const CalibrationSettings& settings);

struct CalibrationResult {
  std::vector<uint8_t> profile;
  uint32_t documents = 0, resumed = 0;  // that entered; of these, what the state file had
  uint64_t tokens = 0, nonfinite = 0;
  std::string no_metric;  // why there is none though it was asked for; empty: there is one
  std::array<std::vector<float>, 2> weights;  // by stream (K, V) and layer; empty when not measured
  double seconds = 0;                         // all; of it, phase by phase:
  double documents_seconds = 0, weights_seconds = 0, bases_seconds = 0;
};

using ShowProgress = std::function<void(const std::string&)>;

// Throws Failure when the state file is damaged, of another model, or of other texts or settings; it is then
// left as it is. It is deleted by the caller, once the profile is kept.
CalibrationResult Calibrate(const engine::Engine& engine, const Model& model, const CalibrationPlan& plan,
                            const std::string& state_path, const ShowProgress& show);

// Where profiles are kept: `deps`/profiles in a checkout, else a folder of the user's cache.
std::string ProfileFolder(const std::string& deps);

// The path of the profile that `settings` stand for, which is made first if it is not there.
std::string EnsureProfile(const engine::Engine& engine, const Model& model,
                          const CalibrationSettings& settings, const std::string& deps,
                          const ShowProgress& show);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_CALIBRATION_H_
