// MemoryTier: frames in the process's memory, least recently used out first.
//
// Thread-safe; one lock over the index, never held while bytes are copied. A reader's FrameRef keeps its
// memory, so eviction and removal never pull it away.
#ifndef KVARTET_LIB_CACHE_MEMORY_TIER_H_
#define KVARTET_LIB_CACHE_MEMORY_TIER_H_

#include <list>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "cache/tier.h"

namespace kvt {

class MemoryTier : public Tier {
 public:
  // `capacity` counts the memory that frames occupy; 0: no limit.
  MemoryTier(std::shared_ptr<Runtime> runtime, uint64_t capacity)
      : runtime_(std::move(runtime)), capacity_(capacity) {}

  StatusOr<std::unique_ptr<StagedPut>> Stage(const Key& key, const FrameRef& frame) override
      ABSL_LOCKS_EXCLUDED(mu_);
  Status Commit(std::unique_ptr<StagedPut> put) override ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<FrameRef> Get(const Key& key, FrameScratch* scratch) override ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<FrameRef> Front(const Key& key, FrameScratch* scratch) override ABSL_LOCKS_EXCLUDED(mu_);
  bool Contains(const Key& key) const override ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<uint64_t> Remove(absl::Span<const Key> keys) override ABSL_LOCKS_EXCLUDED(mu_);
  bool KeepsBuffers() const override { return true; }
  uint64_t BatchBytes() const override { return 0; }
  uint64_t Shed(uint64_t bytes) override ABSL_LOCKS_EXCLUDED(mu_);
  Status Flush() override { return OkStatus(); }
  void Close() override ABSL_LOCKS_EXCLUDED(mu_);
  TierStats stats() const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    Key key;
    FrameRef frame;
  };
  using Order = std::list<Entry>;  // most recently used first
  struct Put;

  // The frame with an owner whose memory is not much larger than it.
  StatusOr<FrameRef> Keep(const FrameRef& frame) ABSL_LOCKS_EXCLUDED(mu_);
  // Moves the least recently used entry to `out`, whose owner frees it without the lock.
  void EvictOne(Order* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Unlink(Order::iterator entry, Order* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<Runtime> runtime_;
  const uint64_t capacity_;

  mutable Mutex mu_;
  Order order_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Key, Order::iterator> index_ ABSL_GUARDED_BY(mu_);
  uint64_t held_ ABSL_GUARDED_BY(mu_) = 0;   // memory of visible frames
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // frames' own bytes
  uint64_t evictions_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_MEMORY_TIER_H_
