// TokenBucket: limits bytes per second, with a burst of a few milliseconds. Used by one thread.
#ifndef KVARTET_LIB_NET_TOKEN_BUCKET_H_
#define KVARTET_LIB_NET_TOKEN_BUCKET_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/deadline.h"

namespace kvt::net {

class TokenBucket {
 public:
  using Time = Deadline::Clock::time_point;

  // 0: no limit. The bucket starts empty, so that the first bytes are paced too.
  TokenBucket(uint64_t bytes_per_second, Time now)
      : rate_(static_cast<double>(bytes_per_second)),
        // A thread that wakes late by less than this catches up; the floor lets a packet through at any rate.
        burst_(std::max(rate_ * 0.005, 2048.0)),
        at_(now) {}

  bool limited() const { return rate_ > 0; }

  // Bytes that may go now: 0, or at least `enough` or half the burst, whichever is less.
  uint64_t Available(Time now, uint64_t enough) {
    if (!limited()) return UINT64_MAX;
    Fill(now);
    return tokens_ >= Threshold(enough) ? static_cast<uint64_t>(tokens_) : 0;
  }
  // Bytes that went; may be more than what was available, later ones then wait longer.
  void Spend(uint64_t bytes) {
    if (limited()) tokens_ -= static_cast<double>(bytes);
  }
  // When Available(_, enough) will not be 0.
  Time When(uint64_t enough) const {
    const double missing = std::max(Threshold(enough) - tokens_, 0.0);
    return at_ + std::chrono::nanoseconds(static_cast<int64_t>(missing / rate_ * 1e9) + 1000);
  }

 private:
  double Threshold(uint64_t enough) const {
    return std::max(1.0, std::min(static_cast<double>(enough), burst_ / 2));
  }
  void Fill(Time now) {
    if (now <= at_) return;
    tokens_ = std::min(tokens_ + rate_ * std::chrono::duration<double>(now - at_).count(), burst_);
    at_ = now;
  }

  const double rate_, burst_;
  double tokens_ = 0;
  Time at_;
};

}  // namespace kvt::net

#endif  // KVARTET_LIB_NET_TOKEN_BUCKET_H_
