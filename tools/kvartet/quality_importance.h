// Importance of a context's tokens, from the queries that the engine showed while it computed them. Threads:
// pure functions.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_IMPORTANCE_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_IMPORTANCE_H_

#include <cstdint>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"

namespace kvt::cli {

inline constexpr int32_t kImportanceEvery = 4;  // the queries of one token in so many are used

// The rows of `first` at positions before `end`, then those of `then`, which are behind them.
engine::Captured JoinCaptured(const engine::Captured& first, int32_t end, const engine::Captured& then);

// A value for each token of the blob, which begins at position 0. `captured` has positions inside it, at
// least one.
std::vector<int8_t> ImportanceOf(const Model& model, const engine::KvBlob& blob,
                                 const engine::Captured& captured);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_IMPORTANCE_H_
