// Deadline: a point on the steady clock after which a wait gives up. Immutable.
#ifndef KVARTET_LIB_BASE_DEADLINE_H_
#define KVARTET_LIB_BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/status.h"

namespace kvt {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // `timeout_ms` from now; a negative one is an error; more than a year counts as a year.
  static StatusOr<Deadline> FromTimeout(int64_t timeout_ms) {
    if (timeout_ms < 0)
      return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("timeout_ms is negative: ", timeout_ms));
    return After(std::chrono::milliseconds(std::min<int64_t>(timeout_ms, int64_t{365} * 24 * 3600 * 1000)));
  }
  static Deadline After(Clock::duration wait) { return Deadline(Clock::now() + wait); }

  Clock::time_point time() const { return time_; }
  bool Expired() const { return Clock::now() >= time_; }
  // Milliseconds left, rounded up, at least 0 and at most what poll(2) takes.
  int RemainingMs() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
  }

 private:
  explicit Deadline(Clock::time_point time) : time_(time) {}
  Clock::time_point time_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_DEADLINE_H_
