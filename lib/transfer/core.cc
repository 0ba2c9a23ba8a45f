#include "transfer/core.h"

#include "absl/cleanup/cleanup.h"

namespace kvt::transfer {

void Counters::Count(const Status& reason) {
  switch (CodeOf(reason)) {
    case KVT_ERR_VERSION:
      refused_version.fetch_add(1, std::memory_order_relaxed);
      break;
    case KVT_ERR_LIMIT:
      refused_limit.fetch_add(1, std::memory_order_relaxed);
      break;
    case KVT_ERR_CORRUPT:
      corrupt.fetch_add(1, std::memory_order_relaxed);
      break;
    default:
      break;
  }
}

StatusOr<std::shared_ptr<Core>> Core::Create(std::shared_ptr<Runtime> runtime, const Identity& identity) {
  KVT_ASSIGN_OR_RETURN(auto loop, net::Loop::Create([runtime](const Status& failed) {
                         runtime->Log(KVT_LOG_ERROR, absl::StrCat("a node's thread: ", failed.message()));
                       }));
  KVT_ASSIGN_OR_RETURN(auto operations, Operations::Create(runtime->operation_times()));
  return std::shared_ptr<Core>(
      new Core(std::move(runtime), std::move(loop), std::move(operations), identity));
}

Status Core::CheckFrame(Bytes frame, const Key* key) {
  uint64_t checksums = 0;
  const StatusOr<FrameSummary> summary = VerifyFrame(frame, &checksums);
  counters.checksums.fetch_add(checksums, std::memory_order_relaxed);
  if (!summary.ok()) {
    counters.Count(summary.status());
    return summary.status();
  }
  if (summary->frame_bytes != frame.size()) {
    counters.corrupt.fetch_add(1, std::memory_order_relaxed);
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame of ", summary->frame_bytes, " bytes arrived as ",
                                               frame.size(), " bytes"));
  }
  if (summary->model != identity.model)
    return Error(KVT_ERR_MISMATCH, absl::StrCat("frame.model is ", Hex(summary->model), ", this node's is ",
                                                Hex(identity.model)));
  if (summary->namespace_digest != identity.namespace_digest)
    return Error(KVT_ERR_MISMATCH, absl::StrCat("frame.namespace_digest is ", Hex(summary->namespace_digest),
                                                ", this node's is ", Hex(identity.namespace_digest)));
  if (key != nullptr && summary->key != *key)
    return Error(KVT_ERR_MISMATCH,
                 absl::StrCat("frame.key is ", summary->key.ToString(), ", asked for was ", key->ToString()));
  return OkStatus();
}

void Core::Work(std::function<void()> task) {
  {
    MutexLock lock(&tasks_->mu);
    tasks_->waiting.push_back(std::move(task));
  }
  runtime->Submit([tasks = tasks_] { RunTask(tasks.get()); });
}

void Core::RunTask(Tasks* tasks) {
  std::function<void()> task;
  {
    MutexLock lock(&tasks->mu);
    if (tasks->waiting.empty()) return;
    task = std::move(tasks->waiting.front());
    tasks->waiting.pop_front();
    ++tasks->running;
  }
  // Also when the task throws, which the worker then logs.
  const auto ended = absl::MakeCleanup([&] {
    // What it holds goes before its end is known.
    task = nullptr;
    MutexLock lock(&tasks->mu);
    if (--tasks->running == 0) tasks->idle.SignalAll();
  });
  task();
}

void Core::EndWork() {
  std::deque<std::function<void()>> dropped;
  MutexLock lock(&tasks_->mu);
  dropped.swap(tasks_->waiting);
  while (tasks_->running != 0) tasks_->idle.Wait(&tasks_->mu);
}

}  // namespace kvt::transfer
