// Greedy generation on a session, plain or drafted on a lossy cache and verified on the full one.
#ifndef KVARTET_TOOLS_KVARTET_GENERATE_H_
#define KVARTET_TOOLS_KVARTET_GENERATE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"

namespace kvt::cli {

using TokensSoFar = std::function<void(size_t)>;

// Continues after `first`, which the session has not seen, until there are `count` tokens. The model's end
// tokens do not stop it: runs are compared over a fixed length.
std::vector<int32_t> GeneratePlain(engine::Session* session, int32_t first, int32_t count,
                                   const TokensSoFar& progress);

struct VerifiedRun {
  std::vector<int32_t> tokens;
  kvt_verifier_stats_t stats;
};

// The same tokens as GeneratePlain(full) gives, at the fidelity level of the probe. Both sessions hold the
// prompt.
struct Fidelity {
  int32_t level = KVT_FIDELITY_N;
  float margin = 0;
};
VerifiedRun GenerateVerified(engine::Session* full, engine::Session* draft, std::span<const int32_t> prompt,
                             int32_t first, int32_t count, int32_t draft_length, int32_t vocabulary,
                             Fidelity fidelity, const TokensSoFar& progress);

// The start-up probe: the same tokens decoded one by one and in batches of the widths that verification uses.
Fidelity ProbeFidelity(const engine::Engine& engine, int32_t threads, int32_t draft_length);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_GENERATE_H_
