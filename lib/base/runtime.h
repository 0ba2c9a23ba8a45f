// Runtime: the threads, memory budget and log sink that the host created. Shared by everything that is opened
// on it.
//
// Thread-safe. Owners of loops stop and join them before they let the runtime go.
#ifndef KVARTET_LIB_BASE_RUNTIME_H_
#define KVARTET_LIB_BASE_RUNTIME_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/handles.h"
#include "base/mutex.h"
#include "base/operation_times.h"
#include "kvartet/runtime.h"

namespace kvt {

class Runtime {
 public:
  static StatusOr<std::shared_ptr<Runtime>> Create(const kvt_runtime_options_t& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  uint32_t threads() const { return options_.threads; }
  // Queues a task for a worker thread. False after Stop. What a task throws is logged.
  bool Submit(std::function<void()> task);

  // Starts a thread of the runtime's for a loop that its owner ends; the owner joins it. KVT_ERR_LIMIT.
  StatusOr<std::thread> StartLoop(const char* name, std::function<void()> loop);

  // Counts of objects opened on this runtime, for kvt_runtime_close.
  void AddChild() ABSL_LOCKS_EXCLUDED(mu_);
  void RemoveChild() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until no child is left.
  Status WaitIdle(Deadline deadline) ABSL_LOCKS_EXCLUDED(mu_);

  // Memory budget for frames and buffers.
  Status Charge(uint64_t bytes);
  void Release(uint64_t bytes);
  // Whether the budget has so much in all, used or not.
  bool MayHold(uint64_t bytes) const {
    return options_.memory_limit_bytes == 0 || bytes <= options_.memory_limit_bytes;
  }
  uint64_t memory_used() const { return used_.load(std::memory_order_relaxed); }

  // Of the caches and nodes on this runtime, since it was created.
  const std::shared_ptr<OperationTimes>& operation_times() const { return operation_times_; }

  bool ShouldLog(int32_t level) const { return options_.log != nullptr && level >= options_.log_level; }
  void Log(int32_t level, absl::string_view message) const;

 private:
  // Finishes queued tasks and joins the workers; a worker that drops the last reference is left to end by
  // itself.
  void Stop();

  // What workers share. They keep it alive, so that a task may drop the last reference to the runtime.
  struct Pool {
    explicit Pool(const kvt_runtime_options_t& o) : options(o) {}
    const kvt_runtime_options_t options;
    Mutex mu;
    CondVar wake;
    std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mu);
    bool stopping ABSL_GUARDED_BY(mu) = false;
  };

  explicit Runtime(const kvt_runtime_options_t& options)
      : options_(options), pool_(std::make_shared<Pool>(options)) {}
  static void Work(const std::shared_ptr<Pool>& pool);

  const kvt_runtime_options_t options_;
  const std::shared_ptr<Pool> pool_;
  const std::shared_ptr<OperationTimes> operation_times_ = std::make_shared<OperationTimes>();
  std::atomic<uint64_t> used_{0};
  std::vector<std::thread> workers_;  // written by Create and Stop alone

  Mutex mu_;
  CondVar idle_;
  uint64_t children_ ABSL_GUARDED_BY(mu_) = 0;
};

template <>
struct HandleTraits<Runtime> {
  static constexpr HandleType kType = HandleType::kRuntime;
};

// Bytes of the budget held for as long as the object lives.
class MemoryLease {
 public:
  MemoryLease() = default;
  static StatusOr<MemoryLease> Take(std::shared_ptr<Runtime> runtime, uint64_t bytes) {
    KVT_RETURN_IF_ERROR(runtime->Charge(bytes));
    return MemoryLease(std::move(runtime), bytes);
  }
  MemoryLease(MemoryLease&& other) noexcept
      : runtime_(std::move(other.runtime_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryLease& operator=(MemoryLease&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryLease() {
    if (runtime_ != nullptr && bytes_ != 0) runtime_->Release(bytes_);
  }

 private:
  MemoryLease(std::shared_ptr<Runtime> runtime, uint64_t bytes)
      : runtime_(std::move(runtime)), bytes_(bytes) {}
  std::shared_ptr<Runtime> runtime_;
  uint64_t bytes_ = 0;
};

// Registers an object with its runtime for as long as it lives.
class RuntimeChild {
 public:
  explicit RuntimeChild(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {
    runtime_->AddChild();
  }
  ~RuntimeChild() { runtime_->RemoveChild(); }
  RuntimeChild(const RuntimeChild&) = delete;
  RuntimeChild& operator=(const RuntimeChild&) = delete;
  Runtime& operator*() const { return *runtime_; }
  Runtime* operator->() const { return runtime_.get(); }
  const std::shared_ptr<Runtime>& get() const { return runtime_; }

 private:
  std::shared_ptr<Runtime> runtime_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_RUNTIME_H_
