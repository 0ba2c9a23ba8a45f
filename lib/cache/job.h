// Job: one operation of a cache over many items, run by as many of the runtime's workers as it has use for.
//
// Workers claim the items in chunks and go to the back of the queue after each, so that operations share the
// workers. Who cancels claims all that no worker has claimed, so a cancel never waits for the queue: only for
// the blocks in hand. Whoever is done with the last claimed item finishes the operation; after that nothing
// of the caller's is touched, though workers may still come to the job and find nothing to do.
// Thread-safe by that protocol: an item is worked on by one thread, results_[item] is written by it alone.
#ifndef KVARTET_LIB_CACHE_JOB_H_
#define KVARTET_LIB_CACHE_JOB_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/operations.h"
#include "base/runtime.h"

namespace kvt {

class Job : public std::enable_shared_from_this<Job> {
 public:
  // Ends the operation; `failure` is the text of the first item that failed.
  using Finish = std::function<void(const Operation&, const kvt_completion_t&, const std::string& failure)>;

  // `runtime` and what `finish` uses must live until `finish` returns.
  Job(Runtime* runtime, kvt_status_t* results, size_t count, Finish finish);
  virtual ~Job() = default;

  // Begins; returns at once. Called once.
  void Start(std::shared_ptr<Operation> operation) ABSL_LOCKS_EXCLUDED(mu_);
  // The operation is cancelled: ends it for the items that no worker has claimed. Before Start it does
  // nothing, Start looks for itself.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

 protected:
  // Works on items [begin, end), Reports each exactly once, what it throws is reported for the rest.
  virtual void Run(size_t begin, size_t end) = 0;

  Status Stop() const { return operation_->Stop(); }
  void Report(size_t item, const Status& status, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr size_t kChunk = 32;
  static constexpr kvt_status_t kPending = 1;
  struct Claim {
    size_t begin = 0, end = 0;
  };

  void Step();
  // The next `most` items; false when there is nothing left to do.
  bool Take(size_t most, Claim* claim) ABSL_LOCKS_EXCLUDED(mu_);
  // A claim is dealt with. True when there is more for a worker to do.
  bool GiveBack() ABSL_LOCKS_EXCLUDED(mu_);
  // Reports all that no worker has claimed.
  void DropRest(const Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  bool Resubmit();
  void RunChunk(const Claim& claim);
  void End() ABSL_LOCKS_EXCLUDED(mu_);

  Runtime* const runtime_;
  kvt_status_t* const results_;
  const size_t count_;
  const Finish finish_;
  std::shared_ptr<Operation> operation_;  // set by Start before anybody works
  size_t chunk_ = kChunk;                 // likewise
  std::atomic<uint64_t> items_ok_{0};
  std::atomic<uint64_t> bytes_{0};

  Mutex mu_;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;     // first item that nobody has claimed
  size_t working_ ABSL_GUARDED_BY(mu_) = 0;  // claims that are not dealt with
  // Of the failed item with the least number. Text, since a Status is not handed from thread to thread: the
  // distribution's Abseil counts its references where ThreadSanitizer does not see it.
  size_t failed_item_ ABSL_GUARDED_BY(mu_);
  kvt_status_t failed_code_ ABSL_GUARDED_BY(mu_) = KVT_OK;
  std::string failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_JOB_H_
