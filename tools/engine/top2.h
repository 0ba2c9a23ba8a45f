// The greedy choice of a row of logits and how clear it is. Threads: pure functions.
#ifndef KVARTET_TOOLS_ENGINE_TOP2_H_
#define KVARTET_TOOLS_ENGINE_TOP2_H_

#include <cstdint>
#include <span>

namespace kvt::engine {

struct Choice {
  int32_t token = -1;  // argmax; the lowest id among equals; -1 when no logit is a number
  float gap = 0;       // best minus second best; infinity when there is no second
};

// NaN never wins and never counts as second.
Choice Top2(std::span<const float> logits);

// The largest absolute difference of two rows of one length; infinity when a NaN or another length is found.
float MaxAbsDiff(std::span<const float> a, std::span<const float> b);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_TOP2_H_
