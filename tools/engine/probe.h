// Measures how far this engine's numbers depend on how tokens are batched. It measures; what level that is,
// is for the verifier to say. Threads: any. Blocks: yes, about a second per context length for a small model.
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

// One width at one context length. Every row is compared, so the first and the last are.
struct WidthFinding {
  int32_t context = 0;
  int32_t width = 0;
  // The same tokens one by one against one batch.
  bool single_equal = false;      // all rows equal by memcmp
  float single_max_diff = 0;      // largest absolute difference of a logit
  int32_t argmax_mismatches = 0;  // rows whose greedy choice differs
  // The same batch twice.
  bool repeat_equal = false;
  float repeat_max_diff = 0;
  // The same token after the same KV, as the last row of a batch and as the first row of another of this
  // width.
  bool row_equal = false;
  float row_max_diff = 0;
};

struct ProbeReport {
  std::vector<WidthFinding> findings;
  float min_gap = 0;  // smallest top-2 gap of the single rows

  bool AllSingleEqual() const;
  bool AllRepeatEqual() const;
  bool AllRowEqual() const;
  float MaxSingleDiff() const;
};

// Runs in a session of its own on a fixed text; long contexts are filled with repeated rows, not prefilled.
Result<ProbeReport> Probe(const Engine& engine, const ProbeOptions& options = {});

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_PROBE_H_
