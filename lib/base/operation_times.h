// OperationTimes: how long the operations of a runtime's caches and nodes took, by kind. Thread-safe.
#ifndef KVARTET_LIB_BASE_OPERATION_TIMES_H_
#define KVARTET_LIB_BASE_OPERATION_TIMES_H_

#include <array>
#include <atomic>

#include "base/histogram.h"

namespace kvt {

enum class OperationKind : uint8_t { kPut, kStore, kLoad, kPull, kPush, kPullStream };
inline constexpr size_t kOperationKinds = 6;

class OperationTimes {
 public:
  // From submit to completion, whatever the status.
  void Add(OperationKind kind, uint64_t ns, bool ok) {
    One& one = kinds_[static_cast<size_t>(kind)];
    one.times.Add(ns);
    if (!ok) one.failed.fetch_add(1, std::memory_order_relaxed);
  }
  const Histogram& times(OperationKind kind) const { return kinds_[static_cast<size_t>(kind)].times; }
  // How many ended with another status than KVT_OK.
  uint64_t failed(OperationKind kind) const {
    return kinds_[static_cast<size_t>(kind)].failed.load(std::memory_order_relaxed);
  }

 private:
  struct One {
    Histogram times;
    std::atomic<uint64_t> failed{0};
  };
  std::array<One, kOperationKinds> kinds_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_OPERATION_TIMES_H_
