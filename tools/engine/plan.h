// How to cut a prefill so that its bits do not depend on the cut.
//
// The engine's attention takes one path for 64 or more query rows and another below; the two differ in the
// last bits. A prefill therefore never runs a chunk under 64 tokens, unless it has fewer tokens in all.
// Threads: pure functions.
#ifndef KVARTET_TOOLS_ENGINE_PLAN_H_
#define KVARTET_TOOLS_ENGINE_PLAN_H_

#include <cstdint>
#include <vector>

#include "engine/result.h"

namespace kvt::engine {

inline constexpr int32_t kMinChunk = 64;

// The sizes of the chunks of a prefill of `tokens` tokens, at most `chunk` each. Every one has kMinChunk
// tokens or more unless `tokens` is smaller than that. `chunk` must be at least 2 * kMinChunk, so that a
// short rest can be filled up from the chunk before it.
Result<std::vector<int32_t>> PrefillChunks(int32_t tokens, int32_t chunk);

// How many of `matched` cached tokens of a prompt of `prefill` tokens may be reused: the largest multiple of
// `grain` that leaves nothing, or at least kMinChunk tokens, to prefill. A prompt shorter than kMinChunk that
// is not matched whole reuses nothing.
Result<int32_t> ReusableTokens(int32_t prefill, int32_t matched, int32_t grain);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_PLAN_H_
