// Histogram: how often times of each size occurred, in buckets of a fixed number whose width grows with the
// time. Thread-safe without a lock; a reader sees each time at most once, and those before its call.
//
// Eight buckets a power of two from 2^10 ns (about a microsecond) to 2^42 ns (about 73 minutes): the middle
// of a bucket is within 6.25 % of every time in it. Shorter times count as 0, longer ones as 2^42 ns.
#ifndef KVARTET_LIB_BASE_HISTOGRAM_H_
#define KVARTET_LIB_BASE_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kvt {

class Histogram {
 public:
  static constexpr int kFirstPower = 10, kLastPower = 42, kBitsAPower = 3;
  // One for what is shorter, one for what is longer.
  static constexpr size_t kBuckets = ((kLastPower - kFirstPower) << kBitsAPower) + 2;

  static constexpr size_t BucketOf(uint64_t ns) {
    if (ns < uint64_t{1} << kFirstPower) return 0;
    if (ns >= uint64_t{1} << kLastPower) return kBuckets - 1;
    const int power = std::bit_width(ns) - 1;
    const auto part = static_cast<size_t>(ns >> (power - kBitsAPower)) & ((1u << kBitsAPower) - 1);
    return (static_cast<size_t>(power - kFirstPower) << kBitsAPower) + part + 1;
  }
  // The least time of a bucket. That of kBuckets is 2^42, too.
  static constexpr uint64_t LeastOf(size_t bucket) {
    if (bucket == 0) return 0;
    if (bucket >= kBuckets - 1) return uint64_t{1} << kLastPower;
    const size_t power = ((bucket - 1) >> kBitsAPower) + kFirstPower;
    const uint64_t part = (bucket - 1) & ((1u << kBitsAPower) - 1);
    return ((uint64_t{1} << kBitsAPower) + part) << (power - kBitsAPower);
  }
  // What a time of a bucket is reported as.
  static constexpr uint64_t MiddleOf(size_t bucket) {
    return bucket == 0 ? 0 : LeastOf(bucket) + (LeastOf(bucket + 1) - LeastOf(bucket)) / 2;
  }

  void Add(uint64_t ns) { counts_[BucketOf(ns)].fetch_add(1, std::memory_order_relaxed); }

  // What was counted up to one moment or so: sums and quantiles of one Counts fit each other.
  class Counts {
   public:
    explicit Counts(const Histogram& histogram) {
      for (size_t i = 0; i < kBuckets; ++i)
        total_ += counts_[i] = histogram.counts_[i].load(std::memory_order_relaxed);
    }
    uint64_t total() const { return total_; }
    // The time that `percent` of all times do not exceed, in nanoseconds; 0 when there are none.
    uint64_t Percentile(uint32_t percent) const {
      if (total_ == 0) return 0;
      // Rounded up, without overflow.
      const uint64_t rank = total_ / 100 * percent + (total_ % 100 * percent + 99) / 100;
      uint64_t seen = 0;
      for (size_t i = 0; i < kBuckets; ++i) {
        seen += counts_[i];
        if (seen >= rank && seen != 0) return MiddleOf(i);
      }
      return MiddleOf(kBuckets - 1);
    }

   private:
    std::array<uint64_t, kBuckets> counts_;
    uint64_t total_ = 0;
  };

 private:
  std::array<std::atomic<uint64_t>, kBuckets> counts_ = {};
};

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_HISTOGRAM_H_
