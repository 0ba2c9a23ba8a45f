// What `kvartet quality` measures on: weights, documents and a profile. All throw Failure. Threads: one at a
// time.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_INPUTS_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_INPUTS_H_

#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"
#include "kvartet/progress_line.h"
#include "kvartet/quality.h"
#include "kvartet/quality_contexts.h"
#include "kvartet/quality_methods.h"

namespace kvt::cli {

// The file whose weights are measured, and how the report words it.
struct QualityWeights {
  std::string path;
  std::string words;
};

// Writes the f32 copy when it is asked for and not there.
QualityWeights PrepareWeights(const QualitySettings& settings, ProgressLine* progress);

ContextCut CutFor(const QualitySettings& settings, const engine::Engine& engine);

// Texts and copy probes, in the order of their list; copy probes that the user names come last.
std::vector<QualityDocument> QualityDocuments(const QualitySettings& settings, const ContextCut& cut,
                                              const engine::Engine& engine);

// The profile that the methods need; empty when they need none. Those that need none are made first, so that
// a wrong name shows before a calibration.
std::vector<uint8_t> QualityProfile(const QualitySettings& settings,
                                    const std::vector<QualityMethod>& methods, const engine::Engine& engine,
                                    const Model& model, ProgressLine* progress);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_INPUTS_H_
