#include "base/operations.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace kvt {
namespace {

// Every Operations has ids of its own, so that an id handed to another cache or node is not found there.
uint64_t FirstId() {
  static std::atomic<uint64_t> ranges{0};
  return ((ranges.fetch_add(1, std::memory_order_relaxed) & 0x7fffff) << 40) + 1;
}

}  // namespace

Status Operation::Stop() const {
  if (cancelled()) return Error(KVT_ERR_CANCELLED, absl::StrCat("operation ", id_, " was cancelled"));
  if (deadline_.Expired())
    return Error(KVT_ERR_TIMEOUT, absl::StrCat("operation ", id_, " reached its deadline"));
  return OkStatus();
}

StatusOr<std::unique_ptr<Operations>> Operations::Create(std::shared_ptr<OperationTimes> times) {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return ErrnoError(errno, "eventfd", "for completions");
  return std::unique_ptr<Operations>(new Operations(fd, FirstId(), std::move(times)));
}

Operations::~Operations() {
  CancelAll();
  close(event_fd_);
}

StatusOr<std::shared_ptr<Operation>> Operations::Begin(OperationKind kind, Deadline deadline,
                                                       std::function<void()> on_cancel) {
  MutexLock lock(&mu_);
  if (closed_) return Error(KVT_ERR_CLOSED, "close or destroy has begun");
  if (running_.size() + completions_.size() >= kMax) {
    return Error(KVT_ERR_LIMIT,
                 absl::StrCat(running_.size(), " operations in flight and ", completions_.size(),
                              " completions not taken, the most is ", kMax));
  }
  auto operation = std::make_shared<Operation>(next_id_++, kind, deadline);
  operation->on_cancel_ = std::move(on_cancel);
  running_.emplace(operation->id(), operation);
  return operation;
}

void Operations::Push(const kvt_completion_t& completion) {
  if (completions_.empty()) {
    const uint64_t one = 1;
    // The counter cannot overflow: it is cleared when the queue runs empty.
    [[maybe_unused]] const ssize_t written = write(event_fd_, &one, sizeof one);
  }
  completions_.push_back(completion);
  changed_.SignalAll();
}

void Operations::Drained() {
  if (!completions_.empty()) return;
  uint64_t count;
  [[maybe_unused]] const ssize_t read_bytes = read(event_fd_, &count, sizeof count);
}

void Operations::Part(const Operation& operation, kvt_completion_t completion) {
  completion.operation = operation.id();
  completion.kind = KVT_COMPLETION_PART;
  MutexLock lock(&mu_);
  Push(completion);
}

void Operations::Finish(const Operation& operation, kvt_completion_t completion) {
  completion.operation = operation.id();
  completion.kind = KVT_COMPLETION_DONE;
  // Before the end is known, so that who waits for it finds its time.
  const auto took = Deadline::Clock::now() - operation.began_;
  times_->Add(operation.kind_,
              static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()),
              completion.status == KVT_OK);
  MutexLock lock(&mu_);
  running_.erase(operation.id());
  Push(completion);
}

size_t Operations::Poll(absl::Span<kvt_completion_t> out) {
  MutexLock lock(&mu_);
  const size_t count = std::min(out.size(), completions_.size());
  std::copy_n(completions_.begin(), count, out.begin());
  completions_.erase(completions_.begin(), completions_.begin() + static_cast<ptrdiff_t>(count));
  if (count != 0) Drained();
  return count;
}

StatusOr<kvt_completion_t> Operations::Wait(uint64_t id, Deadline deadline) {
  MutexLock lock(&mu_);
  while (running_.contains(id)) {
    if (!changed_.WaitUntil(&mu_, deadline.time()) && running_.contains(id)) {
      return Error(KVT_ERR_TIMEOUT,
                   absl::StrCat("operation ", id, " has not ended at the deadline of the wait"));
    }
  }
  auto done = std::find_if(completions_.begin(), completions_.end(), [id](const kvt_completion_t& c) {
    return c.operation == id && c.kind == KVT_COMPLETION_DONE;
  });
  if (done == completions_.end())
    return Error(KVT_ERR_NOT_FOUND,
                 absl::StrCat("operation ", id, " does not exist or its completion was taken"));
  const kvt_completion_t result = *done;
  std::erase_if(completions_, [id](const kvt_completion_t& c) { return c.operation == id; });
  Drained();
  return result;
}

Status Operations::Cancel(uint64_t id) {
  std::shared_ptr<Operation> operation;
  {
    MutexLock lock(&mu_);
    const auto found = running_.find(id);
    if (found == running_.end()) {
      const bool ended = std::any_of(completions_.begin(), completions_.end(),
                                     [id](const kvt_completion_t& c) { return c.operation == id; });
      if (ended) return OkStatus();
      return Error(KVT_ERR_NOT_FOUND,
                   absl::StrCat("operation ", id, " does not exist or its completion was taken"));
    }
    operation = found->second;
  }
  if (!operation->cancelled_.exchange(true, std::memory_order_acq_rel) && operation->on_cancel_)
    operation->on_cancel_();
  MutexLock lock(&mu_);
  while (running_.contains(id)) changed_.Wait(&mu_);
  return OkStatus();
}

void Operations::Close() {
  MutexLock lock(&mu_);
  closed_ = true;
}

Status Operations::WaitIdle(Deadline deadline) {
  MutexLock lock(&mu_);
  while (!running_.empty()) {
    if (!changed_.WaitUntil(&mu_, deadline.time()) && !running_.empty()) {
      return Error(KVT_ERR_TIMEOUT, absl::StrCat(running_.size(), " operations are still in flight"));
    }
  }
  return OkStatus();
}

void Operations::CancelAll() {
  Close();
  std::vector<std::shared_ptr<Operation>> running;
  {
    MutexLock lock(&mu_);
    for (const auto& [id, operation] : running_) running.push_back(operation);
  }
  for (const auto& operation : running) {
    if (!operation->cancelled_.exchange(true, std::memory_order_acq_rel) && operation->on_cancel_)
      operation->on_cancel_();
  }
  MutexLock lock(&mu_);
  while (!running_.empty()) changed_.Wait(&mu_);
}

}  // namespace kvt
