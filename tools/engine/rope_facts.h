// The rotary embedding of a model, as data. Threads: pure functions.
#ifndef KVARTET_TOOLS_ENGINE_ROPE_FACTS_H_
#define KVARTET_TOOLS_ENGINE_ROPE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/gguf_facts.h"
#include "engine/support.h"

namespace kvt::engine {

// Rotary embedding of K rows. `factors_known` is false when the scaling is not a plain division of each
// pair's frequency (YaRN, LongRoPE): then `factors` is empty and K cannot be turned back by `style`, `base`
// and `dims` alone.
struct RopeFacts {
  RopeStyle style = RopeStyle::kNone;
  int32_t dims = 0;
  double base = 0;
  std::string scaling;  // "none", "linear", "yarn", "longrope"
  bool factors_known = true;
  std::vector<double> factors;  // frequency of pair i is divided by factors[i]; empty: by 1
};

RopeFacts DescribeRope(RopeStyle style, const GgufFacts& facts, int32_t head_dim);

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_ROPE_FACTS_H_
