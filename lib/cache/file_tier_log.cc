// Appending to the newest segment, and flushing it together.
#include <algorithm>
#include <vector>

#include "cache/file_tier.h"

namespace kvt {

Status FileTier::CheckOpen() const {
  if (closed_) return Error(KVT_ERR_CLOSED, "the cache is closed");
  return OkStatus();
}

Status FileTier::EnsureActive(uint64_t bytes) {
  // Waiting for a flush lets others append, so look again after it.
  while (active_ != nullptr) {
    const std::shared_ptr<Segment> segment = active_;
    const uint64_t size = segment->size;
    if (size == 0 || size + bytes <= segment_bytes_) return OkStatus();
    KVT_RETURN_IF_ERROR(SyncUpTo(segment, size));
    // A segment is flushed whole before there is a newer one.
    if (active_ != segment || segment->synced != segment->size) continue;
    active_.reset();
    // A hint, so the append goes on without it.
    const Status saved = SaveUseOrder();
    if (!saved.ok()) LogLater(KVT_LOG_WARNING, saved);
  }
  KVT_RETURN_IF_ERROR(CheckOpen());
  auto segment = std::make_shared<Segment>();
  segment->id = next_segment_++;
  KVT_ASSIGN_OR_RETURN(segment->file, directory_->CreateSegment(segment->id));
  active_ = segment;
  MutexLock lock(&mu_);
  segments_.emplace(segment->id, std::move(segment));
  return OkStatus();
}

StatusOr<uint64_t> FileTier::Append(Bytes header, Bytes frame) {
  static constexpr uint8_t kZeros[kRecordAlignment] = {};
  const uint64_t offset = active_->size;
  const uint64_t padding = (kRecordAlignment - frame.size() % kRecordAlignment) % kRecordAlignment;
  const Status written = active_->file->Write(offset, {header, frame, Bytes(kZeros, padding)});
  if (!written.ok()) {
    // Should this fail too, the next append overwrites the rest; it is no whole record in any case.
    const Status truncated = active_->file->Truncate(offset);
    if (!truncated.ok()) LogLater(KVT_LOG_WARNING, truncated);
    return written;
  }
  const uint64_t bytes = header.size() + frame.size() + padding;
  MutexLock lock(&mu_);
  active_->size += bytes;
  physical_ += bytes;
  return offset;
}

Status FileTier::SyncUpTo(const std::shared_ptr<Segment>& segment, uint64_t end) {
  while (segment->synced < end) {
    if (segment->failure != KVT_OK) return Error(segment->failure, segment->failure_text);
    if (segment->syncing) {
      synced_.Wait(&write_mu_);
      continue;
    }
    segment->syncing = true;
    const uint64_t target = segment->size;
    write_mu_.Unlock();
    Status flushed = segment->file->Sync();
    // After the flush: what is deleted later was stored.
    const Status there = directory_->CheckSegment(segment->id, *segment->file);
    write_mu_.Lock();
    segment->syncing = false;
    // Not when this tier itself has dropped it meanwhile: then nothing of it is wanted.
    if (flushed.ok() && IsKept(*segment)) flushed = there;
    if (flushed.ok()) {
      segment->synced = std::max(segment->synced, target);
    } else {
      // What the disk has of the rest is unknown: it goes, and nothing is appended behind it.
      segment->failure = CodeOf(flushed);
      segment->failure_text = std::string(flushed.message());
      if (active_ == segment) active_.reset();
      const Status truncated = segment->file->Truncate(segment->synced);
      if (!truncated.ok()) LogLater(KVT_LOG_ERROR, truncated);
      MutexLock lock(&mu_);
      if (segments_.contains(segment->id)) physical_ -= segment->size - segment->synced;
      segment->size = segment->synced;
    }
    synced_.SignalAll();
  }
  return OkStatus();
}

Status FileTier::SaveUseOrder() {
  CacheDirectory::UseOrder order;
  order.next_sequence = next_sequence_;
  {
    MutexLock lock(&mu_);
    order.sequences.reserve(order_.size());
    for (auto entry = order_.rbegin(); entry != order_.rend(); ++entry)
      order.sequences.push_back(entry->sequence);
  }
  return directory_->WriteUseOrder(order);
}

Status FileTier::AppendTombstones(const Segment* from, absl::Span<const RecordHeader> tombstones) {
  constexpr size_t kBatch = 256;  // half of the smallest segment
  std::vector<uint8_t> headers;
  while (!tombstones.empty()) {
    const auto batch = tombstones.first(std::min(kBatch, tombstones.size()));
    tombstones.remove_prefix(batch.size());
    headers.clear();
    uint64_t last = 0;
    {
      MutexLock lock(&mu_);
      for (const RecordHeader& tombstone : batch) {
        if (!Hides(tombstone.sequence, from)) continue;
        headers.resize(headers.size() + kRecordHeaderBytes);
        WriteRecordHeader(tombstone, directory_->salt(), &headers[headers.size() - kRecordHeaderBytes]);
        last = std::max(last, tombstone.sequence);
      }
    }
    if (headers.empty()) continue;
    KVT_RETURN_IF_ERROR(EnsureActive(headers.size()));
    const std::shared_ptr<Segment> segment = active_;
    KVT_ASSIGN_OR_RETURN(const uint64_t offset, Append(headers, {}));
    segment->last_tombstone = std::max(segment->last_tombstone, last);
    Pin(segment.get(), 1);
    const Status flushed = SyncUpTo(segment, offset + headers.size());
    Pin(segment.get(), -1);
    KVT_RETURN_IF_ERROR(flushed);
  }
  return OkStatus();
}

}  // namespace kvt
