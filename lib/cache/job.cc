#include "cache/job.h"

#include <algorithm>
#include <new>

#include "base/boundary.h"

namespace kvt {

Job::Job(Runtime* runtime, kvt_status_t* results, size_t count, Finish finish)
    : runtime_(runtime), results_(results), count_(count), finish_(std::move(finish)), failed_item_(count) {}

void Job::Start(std::shared_ptr<Operation> operation) {
  operation_ = std::move(operation);
  const size_t runners = std::clamp<size_t>(count_, 1, runtime_->threads());
  chunk_ = std::clamp<size_t>((count_ + runners - 1) / runners, 1, kChunk);
  std::fill_n(results_, count_, kPending);
  {
    MutexLock lock(&mu_);
    started_ = true;
  }
  size_t begun = 0;
  while (begun < runners && Resubmit()) ++begun;
  if (begun == 0) return DropRest(Error(KVT_ERR_OUT_OF_MEMORY, "out of memory"));
  if (operation_->cancelled()) Cancel();
}

void Job::Cancel() {
  {
    MutexLock lock(&mu_);
    if (!started_) return;
  }
  DropRest(operation_->Stop());
}

void Job::DropRest(const Status& why) {
  Claim claim;
  if (!Take(count_, &claim)) return;
  for (size_t item = claim.begin; item < claim.end; ++item) Report(item, why, 0);
  GiveBack();
}

bool Job::Resubmit() {
  try {
    return runtime_->Submit([job = shared_from_this()] { job->Step(); });
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool Job::Take(size_t most, Claim* claim) {
  MutexLock lock(&mu_);
  // Without any items the first claim ends the operation.
  if (ended_ || (next_ == count_ && (count_ != 0 || working_ != 0))) return false;
  claim->begin = next_;
  claim->end = next_ + std::min(most, count_ - next_);
  next_ = claim->end;
  ++working_;
  return true;
}

bool Job::GiveBack() {
  {
    MutexLock lock(&mu_);
    --working_;
    if (next_ < count_) return true;
    if (working_ != 0 || ended_) return false;
    ended_ = true;
  }
  End();
  return false;
}

void Job::Step() {
  Claim claim;
  while (Take(chunk_, &claim)) {
    RunChunk(claim);
    if (!GiveBack()) return;
    // The rest of a stopped operation is only reported, which is not worth a turn each: a cancel waits for
    // it.
    if (Stop().ok() && Resubmit()) return;
  }
}

void Job::RunChunk(const Claim& claim) {
  const Status failed = CaughtIn([&] { Run(claim.begin, claim.end); });
  if (failed.ok()) return;
  for (size_t item = claim.begin; item < claim.end; ++item) {
    if (results_[item] == kPending) Report(item, failed, 0);
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
