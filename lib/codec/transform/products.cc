#include "codec/transform/products.h"

#include "codec/transform/dense.h"
#include "codec/transform/plan.h"

namespace kvt {
namespace {

double Flop(const ProfileFacts& facts, const ProfileGroup& group, size_t kept) {
  const size_t metric = group.metric.empty() ? 0 : facts.dims[group.stream];
  return 2.0 * static_cast<double>(group.width()) * static_cast<double>(kept + metric);
}

}  // namespace

Products FixedProducts(const ProfileFacts& facts) {
  Products products{facts.ratio_min, {}};
  for (uint32_t ratio = facts.ratio_min; ratio <= kRatioMax; ++ratio) {
    const BitPlan plan = PlanBits(facts, CodeBudget(facts, ratio));
    double flop = 0;
    for (size_t g = 0; g < facts.groups.size(); ++g)
      flop += Flop(facts, facts.groups[g], plan.bits[g].size());
    products.mflop.push_back(flop / 1e6);
  }
  return products;
}

Products DenseProducts(const ProfileFacts& facts) {
  Products products{DenseRatioMin(facts), {}};
  if (facts.dense == nullptr) return products;
  for (uint32_t ratio = products.ratio_min; ratio <= kDenseRatioMax; ++ratio) {
    const int32_t step = DenseStep(*facts.dense, ratio);
    double flop = 0;
    for (const ProfileGroup& group : facts.groups) flop += Flop(facts, group, DenseKept(group, step));
    products.mflop.push_back(flop / 1e6);
  }
  return products;
}

}  // namespace kvt
