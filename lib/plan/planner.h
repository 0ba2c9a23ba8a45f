// Planner: picks the codec of each transfer by its predicted time, and learns from measured ones.
//
// Thread-safe.
#ifndef KVARTET_LIB_PLAN_PLANNER_H_
#define KVARTET_LIB_PLAN_PLANNER_H_

#include <memory>
#include <vector>

#include "base/handles.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kvartet/planner.h"
#include "plan/rung_model.h"

namespace kvt {

kvt_planner_options_t DefaultPlannerOptions();
kvt_codec_request_t DefaultCodecRequest();

class Planner {
 public:
  // `options` has been through ReadStruct. KVT_ERR_INVALID_ARGUMENT.
  static StatusOr<std::shared_ptr<Planner>> Create(const kvt_planner_options_t& options);

  // `request` has been through ReadStruct. KVT_ERR_INVALID_ARGUMENT.
  StatusOr<kvt_codec_choice_t> Pick(const kvt_codec_request_t& request);
  // `choice` likewise. KVT_ERR_INVALID_ARGUMENT.
  Status Observe(const kvt_codec_choice_t& choice, double seconds);
  // KVT_ERR_INVALID_ARGUMENT, KVT_ERR_OUT_OF_RANGE.
  StatusOr<double> Crossover(uint32_t rung, uint32_t segments, uint64_t bytes) const;

 private:
  Planner(std::vector<kvt_codec_rung_t> rungs, uint64_t seed);

  // Index in models_ of a rung; that of none is the last.
  size_t ModelOf(uint32_t rung) const { return rung == KVT_RUNG_NONE ? rungs_.size() : rung; }
  StageTimes Stages(size_t model, uint64_t bytes, double bandwidth, uint32_t segments) const;
  // A draw from a normal distribution.
  double Normal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::vector<kvt_codec_rung_t> rungs_;
  mutable Mutex mu_;
  uint64_t random_ ABSL_GUARDED_BY(mu_);
  std::vector<RungModel> models_ ABSL_GUARDED_BY(mu_);
};

template <>
struct HandleTraits<Planner> {
  static constexpr HandleType kType = HandleType::kPlanner;
};

}  // namespace kvt

#endif  // KVARTET_LIB_PLAN_PLANNER_H_
