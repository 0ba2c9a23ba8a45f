#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "measure/meter.h"

namespace kvt {
namespace {

nlohmann::ordered_json CountersJson(const Counters& counters) {
  nlohmann::ordered_json json;
  for (int32_t id = 1; id <= kCounters; ++id) json[CounterName(id)] = counters[id - 1];
  return json;
}

nlohmann::ordered_json Percentiles(const Histogram::Counts& counts) {
  nlohmann::ordered_json json;
  for (const uint32_t percent : {50u, 90u, 99u})
    json[absl::StrCat("p", percent)] = static_cast<double>(counts.Percentile(percent)) / 1e6;
  return json;
}

nlohmann::ordered_json OperationsJson(const OperationTimes& times) {
  static constexpr const char* kNames[kOperationKinds] = {"put",  "store", "load",
                                                          "pull", "push",  "pull_stream"};
  nlohmann::ordered_json json;
  for (size_t i = 0; i < kOperationKinds; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    // First, as it is counted last.
    const uint64_t failed = times.failed(kind);
    const Histogram::Counts counts(times.times(kind));
    json[kNames[i]] = {{"ended", counts.total()}, {"failed", failed}, {"ms", Percentiles(counts)}};
  }
  return json;
}

}  // namespace

std::string MeterJson(const MeterSums& sums) {
  nlohmann::ordered_json ways = nlohmann::ordered_json::array();
  for (const WaySums& sum : sums.ways) {
    nlohmann::ordered_json ttft;
    for (int32_t part = 1; part <= kParts; ++part) ttft[PartName(part)] = sum.Mean(part) / 1e6;
    ttft["total"] = sum.MeanTotal() / 1e6;
    const double duration =
        sum.requests == 0 ? 0 : static_cast<double>(sum.duration_ns) / static_cast<double>(sum.requests);
    static const WayTimes kNone;
    const WayTimes& spread = sum.spread == nullptr ? kNone : *sum.spread;
    nlohmann::ordered_json percentiles;
    for (int32_t part = 1; part <= kParts; ++part)
      percentiles[PartName(part)] = Percentiles(Histogram::Counts(spread.parts[part - 1]));
    percentiles["total"] = Percentiles(Histogram::Counts(spread.total));
    ways.push_back({{"way", sum.way},
                    {"requests", sum.requests},
                    {"unfinished", sum.unfinished},
                    {"ttft_ms", ttft},
                    {"ttft_percentiles_ms", percentiles},
                    {"duration_ms", duration / 1e6},
                    {"duration_percentiles_ms", Percentiles(Histogram::Counts(spread.duration))},
                    {"counters", CountersJson(sum.counters)}});
  }
  nlohmann::ordered_json document = {
      {"schema", 1}, {"ways", ways}, {"counters", CountersJson(sums.counters)}};
  if (sums.operations != nullptr) document["operations"] = OperationsJson(*sums.operations);
  return document.dump();
}

}  // namespace kvt
