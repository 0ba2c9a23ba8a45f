#include "engine/rope_facts.h"

namespace kvt::engine {

RopeFacts DescribeRope(RopeStyle style, const GgufFacts& facts, int32_t head_dim) {
  RopeFacts rope;
  rope.style = style;
  if (style == RopeStyle::kNone) return rope;
  rope.dims = static_cast<int32_t>(facts.rope_dims.value_or(head_dim));
  rope.base = facts.rope_base;
  rope.scaling = facts.rope_scaling;
  const auto pairs = static_cast<size_t>(rope.dims / 2);
  const bool linear = facts.rope_scaling == "linear" && facts.rope_scaling_factor > 0;
  rope.factors_known = (facts.rope_scaling == "none" || linear) && !facts.rope_long_factors &&
                       (facts.rope_factors.empty() || facts.rope_factors.size() == pairs);
  if (!rope.factors_known || (!linear && facts.rope_factors.empty())) return rope;
  rope.factors = facts.rope_factors.empty() ? std::vector<double>(pairs, 1) : facts.rope_factors;
  if (linear) {
    for (double& factor : rope.factors) factor *= facts.rope_scaling_factor;
  }
  return rope;
}

}  // namespace kvt::engine
