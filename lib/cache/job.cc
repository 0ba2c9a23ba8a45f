#include "cache/job.h"

#include <algorithm>
#include <new>

namespace kvt {

Job::Job(Runtime* runtime, std::shared_ptr<Operation> operation, kvt_status_t* results, size_t count,
         Finish finish)
    : runtime_(runtime),
      operation_(std::move(operation)),
      results_(results),
      count_(count),
      finish_(std::move(finish)),
      failed_item_(count) {}

void Job::Start(const std::shared_ptr<Job>& job) {
  const size_t runners = std::clamp<size_t>(job->count_, 1, job->runtime_->threads());
  job->chunk_ = std::clamp<size_t>((job->count_ + runners - 1) / runners, 1, kChunk);
  // Set before the first one starts: none may take itself for the last.
  job->runners_.store(runners, std::memory_order_relaxed);
  std::fill_n(job->results_, job->count_, kPending);
  for (size_t i = 0; i < runners; ++i) job->runtime_->Submit([job] { job->Step(); });
}

void Job::Step() {
  for (;;) {
    const size_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (begin >= count_) break;
    RunChunk(begin, std::min(count_, begin + chunk_));
    if (next_.load(std::memory_order_relaxed) >= count_) break;
    // The rest of a stopped operation is only reported, which is not worth a turn each: a cancel waits for
    // it.
    if (!Stop().ok()) continue;
    runtime_->Submit([job = shared_from_this()] { job->Step(); });
    return;
  }
  if (runners_.fetch_sub(1, std::memory_order_acq_rel) == 1) End();
}

void Job::RunChunk(size_t begin, size_t end) {
  try {
    Run(begin, end);
  } catch (const std::bad_alloc&) {
    for (size_t item = begin; item < end; ++item) {
      if (results_[item] == kPending) Report(item, Error(KVT_ERR_OUT_OF_MEMORY, "out of memory"), 0);
    }
  }
}

void Job::Report(size_t item, const Status& status, uint64_t bytes) {
  results_[item] = CodeOf(status);
  if (status.ok()) {
    items_ok_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return;
  }
  MutexLock lock(&mu_);
  if (item >= failed_item_) return;
  failed_item_ = item;
  failed_code_ = CodeOf(status);
  failure_ = absl::StrCat("item ", item, ": ", status.message());
}

void Job::End() {
  kvt_completion_t completion = {};
  std::string failure;
  {
    MutexLock lock(&mu_);
    completion.status = failed_code_;
    failure = failure_;
  }
  completion.items_ok = items_ok_.load(std::memory_order_relaxed);
  completion.items = count_;
  completion.bytes = bytes_.load(std::memory_order_relaxed);
  finish_(*operation_, completion, failure);
}

}  // namespace kvt
