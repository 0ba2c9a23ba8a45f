// Meter: the open requests of a host and the sums of the ended ones, grouped by way. Thread-safe; one request
// is marked by one thread at a time, or its parts mean nothing.
#ifndef KVARTET_LIB_MEASURE_METER_H_
#define KVARTET_LIB_MEASURE_METER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/handles.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "base/runtime.h"
#include "measure/request_parts.h"

namespace kvt {

// How the times of one way's requests are spread; added to without a lock.
struct WayTimes {
  std::array<Histogram, kParts> parts;  // part 1 first
  Histogram total, duration;
};

// What ended requests of one way add up to.
struct WaySums {
  std::string way;
  uint64_t requests = 0;    // with a first token: the ones whose times are summed
  uint64_t unfinished = 0;  // ended without one
  PartTimes times = {};
  uint64_t duration_ns = 0;  // begin to end
  Counters counters = {};    // of all ended requests
  // Of the same requests as `times`, or of a few more that ended since. Null until there is one.
  std::shared_ptr<WayTimes> spread;

  // Mean nanoseconds of a part, and of all parts.
  double Mean(int32_t part) const;
  double MeanTotal() const;
  uint64_t counter(int32_t id) const { return counters[id - 1]; }
};

struct MeterSums {
  std::vector<WaySums> ways;                         // in the order in which they first began
  Counters counters = {};                            // counted for the meter itself
  std::shared_ptr<const OperationTimes> operations;  // of the meter's runtime; null without one
};

// The document of kvt_meter_json.
std::string MeterJson(const MeterSums& sums);

class Meter {
 public:
  using Clock = std::function<uint64_t()>;  // nanoseconds since any fixed point

  // Without a clock, the steady one. The runtime may be null in tests.
  explicit Meter(std::shared_ptr<Runtime> runtime, Clock clock = nullptr);

  StatusOr<uint64_t> Begin(absl::string_view way) ABSL_LOCKS_EXCLUDED(mu_);
  Status Part(uint64_t request, int32_t part) ABSL_LOCKS_EXCLUDED(mu_);
  Status Attribute(uint64_t request, int32_t from, int32_t to, uint64_t ns) ABSL_LOCKS_EXCLUDED(mu_);
  Status FirstToken(uint64_t request) ABSL_LOCKS_EXCLUDED(mu_);
  // Request 0 is the meter itself.
  Status Count(uint64_t request, int32_t counter, uint64_t amount) ABSL_LOCKS_EXCLUDED(mu_);
  Status End(uint64_t request) ABSL_LOCKS_EXCLUDED(mu_);

  MeterSums Sums() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Request {
    size_t way;  // index in sums_.ways
    uint64_t begin_ns;
    RequestParts parts;
    Counters counters = {};
  };

  StatusOr<Request*> Find(uint64_t request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<RuntimeChild> runtime_;
  const Clock clock_;

  mutable Mutex mu_;
  uint64_t next_request_ ABSL_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<uint64_t, Request> open_ ABSL_GUARDED_BY(mu_);
  MeterSums sums_ ABSL_GUARDED_BY(mu_);
};

template <>
struct HandleTraits<Meter> {
  static constexpr HandleType kType = HandleType::kMeter;
};

}  // namespace kvt

#endif  // KVARTET_LIB_MEASURE_METER_H_
