#include <nlohmann/json.hpp>

#include "measure/meter.h"

namespace kvt {
namespace {

nlohmann::ordered_json CountersJson(const Counters& counters) {
  nlohmann::ordered_json json;
  for (int32_t id = 1; id <= kCounters; ++id) json[CounterName(id)] = counters[id - 1];
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
    ways.push_back({{"way", sum.way},
                    {"requests", sum.requests},
                    {"unfinished", sum.unfinished},
                    {"ttft_ms", ttft},
                    {"duration_ms", duration / 1e6},
                    {"counters", CountersJson(sum.counters)}});
  }
  const nlohmann::ordered_json document = {
      {"schema", 1}, {"ways", ways}, {"counters", CountersJson(sums.counters)}};
  return document.dump();
}

}  // namespace kvt
