// Measures how far this engine's numbers depend on how tokens are batched: it gives pairs of logit rows for
// the verifier to compare and to judge. Threads: any. Blocks: yes, about half a second per context for a
// small model.
#ifndef KVARTET_TOOLS_ENGINE_PROBE_H_
#define KVARTET_TOOLS_ENGINE_PROBE_H_

#include <cstdint>
#include <vector>

#include "engine/engine.h"

namespace kvt::engine {

struct ProbeOptions {
  SessionOptions session;  // threads as they will be used; context_tokens is set by the probe
  std::vector<int32_t> widths = {2, 4, 8, 9};  // batch widths, 2 to session.max_rows
  // Tokens in the cache before the probe. Above 512 the engine's attention may split a lone query among
  // threads.
  std::vector<int32_t> contexts = {96, 640};
};

// Row r of `alone` is a token decoded by itself, row r of `batched` the same token after the same KV, decoded
// at place places[r] of a batch of widths[r]. The arguments of kvt_fidelity_classify.
struct ProbeRows {
  size_t vocabulary = 0;
  std::vector<float> alone, batched;
  std::vector<uint32_t> widths, places;

  size_t rows() const { return widths.size(); }
};

// Runs in a session of its own on a fixed text; long contexts are filled with repeated rows, not prefilled.
Result<ProbeRows> Probe(const Engine& engine, const ProbeOptions& options = {});

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_PROBE_H_
