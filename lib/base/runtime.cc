#include "base/runtime.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

#include "base/boundary.h"

namespace kvt {
namespace {

// The host's signals are the host's: threads of ours block them all.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

std::thread StartThread(const char* name, std::function<void()> body) {
  BlockSignals block;
  std::thread thread(std::move(body));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

void LogTo(const kvt_runtime_options_t& options, int32_t level, absl::string_view message) {
  if (options.log != nullptr && level >= options.log_level)
    options.log(options.log_context, level, message.data(), message.size());
}

}  // namespace

StatusOr<std::shared_ptr<Runtime>> Runtime::Create(const kvt_runtime_options_t& options) {
  if (options.threads < 1 || options.threads > 256) {
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_runtime_options.threads is ", options.threads, ", allowed are 1 to 256"));
  }
  if (options.reserved != 0)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_runtime_options.reserved is ", options.reserved, ", must be 0"));
  std::shared_ptr<Runtime> runtime(new Runtime(options));
  for (uint32_t i = 0; i < options.threads; ++i) {
    try {
      runtime->workers_.push_back(StartThread("kvt-worker", [pool = runtime->pool_] { Work(pool); }));
    } catch (const std::system_error& e) {
      return Error(KVT_ERR_LIMIT, absl::StrCat("kvt_runtime_options.threads is ", options.threads,
                                               ": thread ", i, " did not start: ", e.what()));
    }
  }
  return runtime;
}

Runtime::~Runtime() { Stop(); }

void Runtime::Stop() {
  {
    MutexLock lock(&pool_->mu);
    pool_->stopping = true;
  }
  pool_->wake.SignalAll();
  for (std::thread& worker : workers_) {
    if (worker.get_id() == std::this_thread::get_id()) {
      worker.detach();
    } else {
      worker.join();
    }
  }
  workers_.clear();
}

void Runtime::Work(const std::shared_ptr<Pool>& pool) {
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(&pool->mu);
      while (pool->tasks.empty() && !pool->stopping) pool->wake.Wait(&pool->mu);
      if (pool->tasks.empty()) return;
      task = std::move(pool->tasks.front());
      pool->tasks.pop_front();
    }
    // Before the task goes, which may be the last to hold the runtime.
    if (const Status failed = CaughtIn(task); !failed.ok())
      LogTo(pool->options, KVT_LOG_ERROR, absl::StrCat("a worker's task: ", failed.message()));
  }
}

bool Runtime::Submit(std::function<void()> task) {
  {
    MutexLock lock(&pool_->mu);
    if (pool_->stopping) return false;
    pool_->tasks.push_back(std::move(task));
  }
  pool_->wake.Signal();
  return true;
}

StatusOr<std::thread> Runtime::StartLoop(const char* name, std::function<void()> loop) {
  try {
    return StartThread(name, std::move(loop));
  } catch (const std::system_error& e) {
    return Error(KVT_ERR_LIMIT, absl::StrCat("thread ", name, " did not start: ", e.what()));
  }
}

void Runtime::AddChild() {
  MutexLock lock(&mu_);
  ++children_;
}

void Runtime::RemoveChild() {
  // Signalled under the lock: after it the waiter may drop the runtime.
  MutexLock lock(&mu_);
  if (--children_ == 0) idle_.SignalAll();
}

Status Runtime::WaitIdle(Deadline deadline) {
  MutexLock lock(&mu_);
  while (children_ != 0) {
    if (!idle_.WaitUntil(&mu_, deadline.time()) && children_ != 0) {
      return Error(KVT_ERR_BUSY, absl::StrCat(children_, " objects of the runtime are still open"));
    }
  }
  return OkStatus();
}

Status Runtime::Charge(uint64_t bytes) {
  const uint64_t limit = options_.memory_limit_bytes;
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (limit != 0 && (bytes > limit || used > limit - bytes)) {
      return Error(KVT_ERR_LIMIT, absl::StrCat("memory limit of the runtime: ", used, " of ", limit,
                                               " bytes used, ", bytes, " more asked for"));
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return OkStatus();
}

void Runtime::Release(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

void Runtime::Log(int32_t level, absl::string_view message) const { LogTo(options_, level, message); }

}  // namespace kvt
