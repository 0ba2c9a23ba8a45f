// Eviction, and compaction of segments whose records are mostly dead.
#include <algorithm>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "cache/file_tier.h"

namespace kvt {

void FileTier::Forget(Order::iterator entry) {
  const uint64_t record = RecordBytes(entry->length);
  entry->segment->live -= record;
  live_ -= record;
  bytes_ -= entry->length;
  index_.erase(entry->key);
  order_.erase(entry);
}

void FileTier::EvictUntil(uint64_t live) {
  while (live_ > live && !order_.empty()) {
    Forget(std::prev(order_.end()));
    ++evictions_;
  }
}

Status FileTier::MakeRoom(uint64_t bytes) {
  uint64_t limit = 0;
  {
    MutexLock lock(&mu_);
    if (capacity_ != 0) EvictUntil(capacity_ - bytes);
    // Without a capacity, as much garbage as there are frames.
    limit = capacity_ != 0 ? capacity_ + slack_bytes() - segment_bytes_
                           : 2 * (live_ + bytes) + 4 * segment_bytes_;
  }
  KVT_RETURN_IF_ERROR(DropDeadSegments());
  if (compacting_) return OkStatus();
  while (physical_bytes() + bytes > limit) {
    const std::shared_ptr<Segment> victim = Victim();
    if (victim == nullptr) return OkStatus();
    KVT_RETURN_IF_ERROR(Compact(victim));
  }
  return OkStatus();
}

bool FileTier::Hides(uint64_t tombstone, const Segment* from) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const auto& item) {
    return item.second.get() != from && item.second->min_sequence < tombstone;
  });
}

bool FileTier::IsDead(const Segment& segment) const {
  if (segment.live != 0 || segment.staged != 0 || Hides(segment.last_tombstone, &segment)) return false;
  // The newest one goes on being used until it is worth the work.
  return &segment != active_.get() || segment.size > std::min(segment_bytes_ / 4, uint64_t{1} << 20);
}

Status FileTier::DropDeadSegments() {
  std::vector<std::shared_ptr<Segment>> dead;
  {
    MutexLock lock(&mu_);
    for (const auto& [id, segment] : segments_) {
      if (IsDead(*segment)) dead.push_back(segment);
    }
  }
  for (const auto& segment : dead) KVT_RETURN_IF_ERROR(DropSegment(segment));
  return OkStatus();
}

Status FileTier::DropSegment(const std::shared_ptr<Segment>& segment) {
  if (active_ == segment) active_.reset();
  KVT_RETURN_IF_ERROR(directory_->RemoveSegment(segment->id));
  MutexLock lock(&mu_);
  if (segments_.erase(segment->id) != 0) physical_ -= segment->size;
  return OkStatus();
}

std::shared_ptr<FileTier::Segment> FileTier::Victim() {
  std::shared_ptr<Segment> victim;
  MutexLock lock(&mu_);
  for (const auto& [id, segment] : segments_) {
    if (segment == active_ || segment->staged != 0 || segment->live == segment->size) continue;
    const auto share = [](const Segment& s) {
      return s.size == 0 ? 0.0 : static_cast<double>(s.live) / static_cast<double>(s.size);
    };
    if (victim == nullptr || share(*segment) < share(*victim)) victim = segment;
  }
  return victim;
}

void FileTier::Pin(Segment* segment, int64_t count) {
  MutexLock lock(&mu_);
  segment->staged += static_cast<uint64_t>(count);
}

bool FileTier::IsKept(const Segment& segment) const {
  MutexLock lock(&mu_);
  const auto found = segments_.find(segment.id);
  return found != segments_.end() && found->second.get() == &segment;
}

bool FileTier::IsAt(const Key& key, const Segment& segment, uint64_t offset) const {
  MutexLock lock(&mu_);
  const auto found = index_.find(key);
  return found != index_.end() && found->second->segment.get() == &segment && found->second->offset == offset;
}

Status FileTier::Compact(const std::shared_ptr<Segment>& victim) {
  struct Move {
    Key key;
    uint64_t from;
    std::shared_ptr<Segment> segment;
    uint64_t to;
  };
  compacting_ = true;
  const auto done = absl::MakeCleanup([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { compacting_ = false; });
  std::vector<Move> moves;
  // Others may append, evict and remove whenever a flush lets go of write_mu_. Neither the victim, whose
  // frames their tombstones have to hide, nor what it is copied to is dropped meanwhile.
  Pin(victim.get(), 1);
  const auto unpin = absl::MakeCleanup([&, this] {
    Pin(victim.get(), -1);
    for (const Move& move : moves) Pin(move.segment.get(), -1);
  });
  FrameScratch scratch(runtime_);
  uint64_t gaps = 0;
  // Records keep their sequence numbers, so a crash before the end leaves two copies of the same record.
  const Status copied = victim->file->Scan(
      directory_->salt(), &gaps,
      [&](uint64_t offset, const RecordHeader& header) ABSL_NO_THREAD_SAFETY_ANALYSIS -> Status {
        if (header.kind == RecordKind::kTombstone)
          return AppendTombstones(victim.get(), absl::MakeConstSpan(&header, 1));
        if (!IsAt(header.key, *victim, offset)) return OkStatus();
        const uint64_t record = RecordBytes(header.length);
        KVT_RETURN_IF_ERROR(EnsureActive(record));
        if (!IsAt(header.key, *victim, offset)) return OkStatus();
        KVT_ASSIGN_OR_RETURN(const std::shared_ptr<FrameBuffer> buffer, scratch.Take(record));
        KVT_RETURN_IF_ERROR(victim->file->Read(offset, MutableBytes(buffer->data(), record)));
        KVT_ASSIGN_OR_RETURN(const uint64_t to, Append(Bytes(buffer->data(), record), {}));
        active_->min_sequence = std::min(active_->min_sequence, header.sequence);
        moves.push_back({header.key, offset, active_, to});
        Pin(active_.get(), 1);
        return OkStatus();
      });
  KVT_RETURN_IF_ERROR(copied);
  for (const Move& move : moves) KVT_RETURN_IF_ERROR(SyncUpTo(move.segment, move.to + 1));
  {
    MutexLock lock(&mu_);
    for (const Move& move : moves) {
      const auto found = index_.find(move.key);
      if (found == index_.end() || found->second->segment != victim || found->second->offset != move.from)
        continue;
      const uint64_t record = RecordBytes(found->second->length);
      victim->live -= record;
      move.segment->live += record;
      found->second->segment = move.segment;
      found->second->offset = move.to;
    }
  }
  return DropSegment(victim);
}

}  // namespace kvt
