// Operations: ids, completions, event descriptor, deadlines and cancellation of a cache or a node.
//
// Protocol of a worker: Begin gives an Operation; while it works it asks Stop() between items; it ends with
// exactly one Finish, after which it touches none of the caller's memory. Thread-safe.
#ifndef KVARTET_LIB_BASE_OPERATIONS_H_
#define KVARTET_LIB_BASE_OPERATIONS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "base/deadline.h"
#include "base/mutex.h"
#include "base/operation_times.h"
#include "kvartet/runtime.h"

namespace kvt {

class Operation {
 public:
  Operation(uint64_t id, OperationKind kind, Deadline deadline) : id_(id), kind_(kind), deadline_(deadline) {}
  uint64_t id() const { return id_; }
  Deadline deadline() const { return deadline_; }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // OK to go on; KVT_ERR_CANCELLED or KVT_ERR_TIMEOUT.
  Status Stop() const;

 private:
  friend class Operations;
  const uint64_t id_;
  const OperationKind kind_;
  const Deadline deadline_;
  const Deadline::Clock::time_point began_ = Deadline::Clock::now();
  std::atomic<bool> cancelled_{false};
  std::function<void()> on_cancel_;  // set before the operation is shared
};

class Operations {
 public:
  // `times`: where the times of its operations are added.
  static StatusOr<std::unique_ptr<Operations>> Create(std::shared_ptr<OperationTimes> times);
  ~Operations();
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  // Starts an operation. `on_cancel`, if any, is called once by whoever cancels, without a lock, to wake the
  // worker. KVT_ERR_CLOSED after Close; KVT_ERR_LIMIT with too many operations in flight or completions not
  // taken.
  StatusOr<std::shared_ptr<Operation>> Begin(OperationKind kind, Deadline deadline,
                                             std::function<void()> on_cancel = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Reports progress (KVT_COMPLETION_PART) or the end (KVT_COMPLETION_DONE) of an operation;
  // `completion.operation` and `kind` are set here.
  void Part(const Operation& operation, kvt_completion_t completion) ABSL_LOCKS_EXCLUDED(mu_);
  void Finish(const Operation& operation, kvt_completion_t completion) ABSL_LOCKS_EXCLUDED(mu_);

  size_t Poll(absl::Span<kvt_completion_t> out) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for DONE and takes it (dropping untaken PARTs). KVT_ERR_NOT_FOUND; KVT_ERR_TIMEOUT when it has not
  // ended at `deadline`.
  StatusOr<kvt_completion_t> Wait(uint64_t id, Deadline deadline) ABSL_LOCKS_EXCLUDED(mu_);
  // Cancels and returns when the operation has ended (its completion is still to be taken).
  Status Cancel(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);

  void Close() ABSL_LOCKS_EXCLUDED(mu_);
  Status WaitIdle(Deadline deadline) ABSL_LOCKS_EXCLUDED(mu_);
  // Close, cancel all, wait until all have ended.
  void CancelAll() ABSL_LOCKS_EXCLUDED(mu_);

  int event_fd() const { return event_fd_; }

  // At most this many operations in flight, and as many completions waiting.
  static constexpr size_t kMax = 65536;

 private:
  Operations(int event_fd, uint64_t first_id, std::shared_ptr<OperationTimes> times)
      : event_fd_(event_fd), times_(std::move(times)), next_id_(first_id) {}
  void Push(const kvt_completion_t& completion) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int event_fd_;
  const std::shared_ptr<OperationTimes> times_;
  Mutex mu_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint64_t, std::shared_ptr<Operation>> running_ ABSL_GUARDED_BY(mu_);
  std::deque<kvt_completion_t> completions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_OPERATIONS_H_
