// Layer weights: what an error in one pair of layers of one stream does to the model's output, measured.
//
// For each pair and stream only its rows of a document's context are replaced by what a codec makes of them;
// the divergence of the continuation from the full cache's, over the error in the metric, is the weight of
// both layers. A model with quantised weights rounds its activations too, and answers the least change of KV
// with a divergence that says nothing; what flipped last bits cause is taken off. Threads: one caller;
// documents are measured at the same time.
#ifndef KVARTET_TOOLS_KVARTET_LAYER_PROBES_H_
#define KVARTET_TOOLS_KVARTET_LAYER_PROBES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/engine.h"
#include "kvartet/forced_output.h"
#include "kvartet/library.h"
#include "kvartet/metric.h"

namespace kvt::cli {

inline constexpr size_t kProbeDocuments = 6;

// By stream (K, V) and layer. `show` is called with how many of how many probes are done. Throws Failure.
std::array<std::vector<float>, 2> MeasureLayerWeights(const engine::Engine& engine, const Model& model,
                                                      const HeadMatrices& matrices,
                                                      const std::vector<ProbeDocument>& documents,
                                                      int32_t jobs,
                                                      const std::function<void(size_t, size_t)>& show);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_LAYER_PROBES_H_
