// Cache: keys -> frames over one tier, with asynchronous puts, stores and loads.
//
// Invariant: what a load or a get hands out was checked in that call; a frame that fails a check is dropped
// and counted. Thread-safe. Destroying it waits until no operation is left.
#ifndef KVARTET_LIB_CACHE_CACHE_H_
#define KVARTET_LIB_CACHE_CACHE_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/operations.h"
#include "base/runtime.h"
#include "cache/job.h"
#include "cache/tier.h"
#include "codec/codec.h"
#include "kvartet/cache.h"

namespace kvt {

class Cache {
 public:
  // See kvt_cache_open.
  static StatusOr<std::shared_ptr<Cache>> Open(std::shared_ptr<Runtime> runtime, absl::string_view url);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Blocks of a view and how they become frames: block i is tokens [spec.token_begin + i x block_tokens,
  // ...).
  struct Blocks {
    std::shared_ptr<const Codec> codec;
    View view;
    FrameSpec spec;
    uint32_t block_tokens = 0;

    FrameSpec SpecOf(size_t block, size_t count, const Key& key) const;
  };

  // The submits of the C ABI; the spans are borrowed until the operation is done. They return its id.
  StatusOr<uint64_t> SubmitPut(absl::Span<const uint8_t> keys, const uint8_t* frames, const uint64_t* lengths,
                               kvt_status_t* results, Deadline deadline);
  StatusOr<uint64_t> SubmitStore(Blocks blocks, absl::Span<const uint8_t> keys, kvt_status_t* results,
                                 Deadline deadline);
  StatusOr<uint64_t> SubmitLoad(Blocks blocks, absl::Span<const uint8_t> keys, kvt_status_t* results,
                                Deadline deadline);

  size_t Poll(absl::Span<kvt_completion_t> out) ABSL_LOCKS_EXCLUDED(mu_);
  // The completion, and as status the operation's with the text of its first failed item.
  Status Wait(uint64_t operation, Deadline deadline, kvt_completion_t* completion) ABSL_LOCKS_EXCLUDED(mu_);
  Status Cancel(uint64_t operation) { return operations_->Cancel(operation); }
  int event_fd() const { return operations_->event_fd(); }
  // Whether Get and Put never wait for a disk.
  bool InMemory() const { return tier_->KeepsBuffers(); }

  // One frame, checked whole, put or got by the calling thread.
  Status Put(const Key& key, Bytes frame);
  StatusOr<FrameRef> Get(const Key& key);
  StatusOr<size_t> Match(absl::Span<const uint8_t> keys) const;
  StatusOr<size_t> Remove(absl::Span<const uint8_t> keys);
  kvt_cache_stats_t stats() const;

  // See kvt_cache_close.
  Status Close(Deadline deadline);
  // Cancels what is in flight, waits for it and lets the tier go.
  void Shutdown();
  // Whether Shutdown has begun.
  bool shut_down() const { return shut_down_.load(std::memory_order_acquire); }

 private:
  class PutJob;
  class StoreJob;
  class LoadJob;

  Cache(std::shared_ptr<Runtime> runtime, std::unique_ptr<Tier> tier, std::unique_ptr<Operations> operations);

  Status CheckOpen() const;
  // Begins an operation that a job works on.
  StatusOr<uint64_t> Submit(OperationKind kind, Deadline deadline, const std::shared_ptr<Job>& job);
  Job::Finish Finisher();
  // The steps of the jobs.
  StatusOr<std::unique_ptr<StagedPut>> StageFrame(const Key& key, Bytes frame, FrameScratch* scratch);
  StatusOr<std::unique_ptr<StagedPut>> StageBlock(const Blocks& blocks, const FrameSpec& spec,
                                                  FrameScratch* scratch, uint64_t* bytes);
  StatusOr<std::shared_ptr<FrameBuffer>> TakeBuffer(uint64_t bytes, FrameScratch* scratch);
  Status CommitStaged(std::unique_ptr<StagedPut> put);
  Status LoadBlock(const Blocks& blocks, const FrameSpec& spec, FrameScratch* scratch, uint64_t* bytes);
  StatusOr<FrameRef> Find(const Key& key, FrameScratch* scratch);
  // Drops a frame that failed a check.
  void DropCorrupt(const Key& key, const Status& why);

  const RuntimeChild runtime_;
  const std::unique_ptr<Tier> tier_;
  std::atomic<bool> closed_{false}, shut_down_{false};
  std::atomic<uint64_t> puts_{0}, hits_{0}, misses_{0}, removals_{0}, corrupt_{0}, checksums_{0};

  mutable Mutex mu_;
  // Texts of operations that failed and whose completion was not taken.
  absl::flat_hash_map<uint64_t, std::string> failures_ ABSL_GUARDED_BY(mu_);

  // Last: its destructor waits for the operations, which use the rest.
  const std::unique_ptr<Operations> operations_;
};

template <>
struct HandleTraits<Cache> {
  static constexpr HandleType kType = HandleType::kCache;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_CACHE_H_
