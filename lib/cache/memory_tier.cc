#include "cache/memory_tier.h"

namespace kvt {
namespace {

// A buffer may be this much larger than its frame before the frame is copied into one that fits.
constexpr uint64_t kWasteDivisor = 8;

}  // namespace

struct MemoryTier::Put : StagedPut {
  Order entry;  // exactly one
};

StatusOr<FrameRef> MemoryTier::Keep(const FrameRef& frame) {
  const uint64_t size = frame.bytes.size();
  if (frame.owner != nullptr &&
      frame.owner->capacity() - size <= size / kWasteDivisor + FrameBuffer::kAlignment)
    return frame;
  for (;;) {
    auto copy = FrameBuffer::Allocate(runtime_, size);
    if (copy.ok()) {
      std::memcpy((*copy)->data(), frame.bytes.data(), size);
      return FrameRef{Bytes((*copy)->data(), size), *std::move(copy)};
    }
    // A full budget of the runtime's gets room by eviction.
    if (CodeOf(copy.status()) != KVT_ERR_LIMIT || Shed(size) == 0) return copy.status();
  }
}

StatusOr<std::unique_ptr<StagedPut>> MemoryTier::Stage(const Key& key, const FrameRef& frame) {
  KVT_ASSIGN_OR_RETURN(FrameRef kept, Keep(frame));
  if (capacity_ != 0 && kept.owner->capacity() > capacity_) {
    return Error(KVT_ERR_LIMIT, absl::StrCat("the frame takes ", kept.owner->capacity(),
                                             " bytes, the capacity is ", capacity_));
  }
  auto put = std::make_unique<Put>();
  put->entry.push_back(Entry{key, std::move(kept)});
  return put;
}

Status MemoryTier::Commit(std::unique_ptr<StagedPut> staged) {
  Order& entry = static_cast<Put&>(*staged).entry;
  const uint64_t held = entry.front().frame.owner->capacity();
  Order evicted;  // or replaced
  MutexLock lock(&mu_);
  if (const auto found = index_.find(entry.front().key); found != index_.end())
    Unlink(found->second, &evicted);
  index_.emplace(entry.front().key, entry.begin());
  held_ += held;
  bytes_ += entry.front().frame.bytes.size();
  while (capacity_ != 0 && held_ > capacity_) EvictOne(&evicted);
  order_.splice(order_.begin(), entry);
  return OkStatus();
}

StatusOr<FrameRef> MemoryTier::Get(const Key& key, FrameScratch*) {
  MutexLock lock(&mu_);
  const auto found = index_.find(key);
  if (found == index_.end()) return Error(KVT_ERR_NOT_FOUND, absl::StrCat("no frame under ", key.ToString()));
  order_.splice(order_.begin(), order_, found->second);
  return found->second->frame;
}

StatusOr<FrameRef> MemoryTier::Front(const Key& key, FrameScratch*) {
  MutexLock lock(&mu_);
  const auto found = index_.find(key);
  if (found == index_.end()) return Error(KVT_ERR_NOT_FOUND, absl::StrCat("no frame under ", key.ToString()));
  return found->second->frame;
}

bool MemoryTier::Contains(const Key& key) const {
  MutexLock lock(&mu_);
  return index_.contains(key);
}

void MemoryTier::Unlink(Order::iterator entry, Order* out) {
  held_ -= entry->frame.owner->capacity();
  bytes_ -= entry->frame.bytes.size();
  index_.erase(entry->key);
  out->splice(out->end(), order_, entry);
}

void MemoryTier::EvictOne(Order* out) {
  Unlink(std::prev(order_.end()), out);
  ++evictions_;
}

StatusOr<uint64_t> MemoryTier::Remove(absl::Span<const Key> keys) {
  Order removed;
  MutexLock lock(&mu_);
  for (const Key& key : keys) {
    const auto found = index_.find(key);
    if (found != index_.end()) Unlink(found->second, &removed);
  }
  return removed.size();
}

uint64_t MemoryTier::Shed(uint64_t bytes) {
  if (!runtime_->MayHold(bytes)) return 0;
  Order evicted;
  MutexLock lock(&mu_);
  const uint64_t before = held_;
  while (before - held_ < bytes && !order_.empty()) EvictOne(&evicted);
  return before - held_;
}

void MemoryTier::Close() {
  Order dropped;
  MutexLock lock(&mu_);
  index_.clear();
  dropped.swap(order_);
  held_ = 0;
  bytes_ = 0;
}

TierStats MemoryTier::stats() const {
  MutexLock lock(&mu_);
  TierStats stats;
  stats.frames = index_.size();
  stats.bytes = bytes_;
  stats.capacity_bytes = capacity_;
  stats.evictions = evictions_;
  return stats;
}

}  // namespace kvt
