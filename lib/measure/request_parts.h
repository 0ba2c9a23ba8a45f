// RequestParts: the time of one request, split into parts that add up to its time to first token exactly.
//
// Invariant: the nanoseconds of the parts sum to the time from the begin to the last mark. Times are given by
// the caller, so that any clock will do; one that goes back counts as standing still. Not thread-safe.
#ifndef KVARTET_LIB_MEASURE_REQUEST_PARTS_H_
#define KVARTET_LIB_MEASURE_REQUEST_PARTS_H_

#include <array>
#include <cstdint>

#include "base/status.h"
#include "kvartet/meter.h"

namespace kvt {

inline constexpr int32_t kParts = KVT_PART_OTHER;            // parts are 1 to kParts
inline constexpr int32_t kCounters = KVT_COUNTER_NONFINITE;  // counters are 1 to kCounters

// The names used in JSON and in messages, for example "first_token" and "bytes_moved".
const char* PartName(int32_t part);
const char* CounterName(int32_t counter);
Status CheckPart(int32_t part, absl::string_view field);
Status CheckCounter(int32_t counter);

using PartTimes = std::array<uint64_t, kParts>;    // nanoseconds, part 1 first
using Counters = std::array<uint64_t, kCounters>;  // counter 1 first

uint64_t Sum(const PartTimes& times);
// Adds without wrapping: a counter that is full stays full.
void Add(uint64_t amount, uint64_t* counter);

class RequestParts {
 public:
  // Until the first mark the time belongs to KVT_PART_OTHER.
  explicit RequestParts(uint64_t now_ns) : last_ns_(now_ns) {}

  // From now on the time belongs to `part`.
  Status Mark(int32_t part, uint64_t now_ns);
  // Moves nanoseconds from one part to another; what `from` has so far is all it can give.
  Status Attribute(int32_t from, int32_t to, uint64_t ns, uint64_t now_ns);
  // Ends the running part for good.
  Status FirstToken(uint64_t now_ns);

  bool has_first_token() const { return running_ == 0; }
  const PartTimes& times() const { return times_; }

 private:
  void CloseRunning(uint64_t now_ns);

  PartTimes times_ = {};
  uint64_t last_ns_;
  int32_t running_ = KVT_PART_OTHER;  // 0 after the first token
};

}  // namespace kvt

#endif  // KVARTET_LIB_MEASURE_REQUEST_PARTS_H_
