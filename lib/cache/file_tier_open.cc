// Rebuilding the index from the segments.
#include <algorithm>
#include <vector>

#include "cache/file_tier.h"
#include "codec/frame.h"

namespace kvt {

// What the segments hold: of each key the newest frame and the newest removal.
struct FileTier::Found {
  absl::flat_hash_map<Key, Entry> frames;
  absl::flat_hash_map<Key, uint64_t> removals;
  std::shared_ptr<Segment> segment;  // being scanned
  uint64_t torn = 0;
  uint64_t last_sequence = 0;
};

Status FileTier::ScanSegment(Segment* segment, bool newest, FrameScratch* scratch, Found* found) {
  KVT_ASSIGN_OR_RETURN(segment->size, segment->file->Size());
  uint64_t whole = 0;  // end of the last whole record
  const Status scanned = segment->file->Scan(
      directory_->salt(), &found->torn, [&](uint64_t offset, const RecordHeader& header) -> Status {
        found->last_sequence = std::max(found->last_sequence, header.sequence);
        if (header.kind == RecordKind::kTombstone) {
          whole = offset + kRecordHeaderBytes;
          uint64_t& removal = found->removals[header.key];
          removal = std::max(removal, header.sequence);
          segment->last_tombstone = std::max(segment->last_tombstone, header.sequence);
          return OkStatus();
        }
        if (newest) {
          // Only what was written since the last flush can be torn, and that is in the newest segment.
          KVT_ASSIGN_OR_RETURN(const auto buffer, scratch->Take(header.length));
          const MutableBytes frame(buffer->data(), header.length);
          KVT_RETURN_IF_ERROR(segment->file->Read(offset + kRecordHeaderBytes, frame));
          const auto summary = VerifyFrame(frame, nullptr);
          if (!summary.ok() || !(summary->key == header.key)) {
            ++found->torn;
            return OkStatus();
          }
        }
        whole = offset + RecordBytes(header.length);
        segment->min_sequence = std::min(segment->min_sequence, header.sequence);
        Entry& entry = found->frames[header.key];
        if (entry.segment == nullptr || entry.sequence <= header.sequence)
          entry = Entry{header.key, found->segment, offset, header.length, header.sequence};
        return OkStatus();
      });
  KVT_RETURN_IF_ERROR(scanned);
  if (newest && whole < segment->size) {
    KVT_RETURN_IF_ERROR(segment->file->Truncate(whole));
    segment->size = whole;
  }
  if (newest) KVT_RETURN_IF_ERROR(segment->file->Sync());
  segment->synced = segment->size;
  return OkStatus();
}

// Least recently used first. What was put after the order was written is newest; what the order lacks though
// it was there had been evicted (or was being put), and is oldest.
void FileTier::SortByUse(const CacheDirectory::UseOrder& order, std::vector<Entry>* entries) {
  absl::flat_hash_map<uint64_t, uint64_t> places;
  for (const uint64_t sequence : order.sequences) places.emplace(sequence, places.size() + 1);
  const auto place = [&](const Entry& entry) -> uint64_t {
    if (entry.sequence >= order.next_sequence) return UINT64_MAX;
    const auto found = places.find(entry.sequence);
    return found == places.end() ? 0 : found->second;
  };
  std::sort(entries->begin(), entries->end(), [&](const Entry& a, const Entry& b) {
    const uint64_t place_a = place(a), place_b = place(b);
    return place_a != place_b ? place_a < place_b : a.sequence < b.sequence;
  });
}

Status FileTier::Rebuild() {
  KVT_ASSIGN_OR_RETURN(const std::vector<uint64_t> ids, directory_->Segments());
  Found found;
  FrameScratch scratch(runtime_);
  std::map<uint64_t, std::shared_ptr<Segment>> segments;
  uint64_t physical = 0;
  for (const uint64_t id : ids) {
    auto segment = std::make_shared<Segment>();
    segment->id = id;
    KVT_ASSIGN_OR_RETURN(segment->file, directory_->OpenSegment(id));
    found.segment = segment;
    KVT_RETURN_IF_ERROR(ScanSegment(segment.get(), id == ids.back(), &scratch, &found));
    physical += segment->size;
    segments.emplace(id, std::move(segment));
  }
  std::vector<Entry> entries;
  for (auto& [key, entry] : found.frames) {
    const auto removal = found.removals.find(key);
    if (removal == found.removals.end() || removal->second < entry.sequence)
      entries.push_back(std::move(entry));
  }
  const CacheDirectory::UseOrder order = directory_->ReadUseOrder(entries.size());
  SortByUse(order, &entries);
  next_sequence_ = std::max(found.last_sequence + 1, order.next_sequence);
  if (!ids.empty()) {
    next_segment_ = ids.back() + 1;
    active_ = segments.rbegin()->second;
  }
  {
    MutexLock lock(&mu_);
    for (Entry& entry : entries) {
      const uint64_t record = RecordBytes(entry.length);
      entry.segment->live += record;
      live_ += record;
      bytes_ += entry.length;
      order_.push_front(std::move(entry));
      index_.emplace(order_.front().key, order_.begin());
    }
    segments_ = std::move(segments);
    physical_ = physical;
    torn_ = found.torn;
    if (capacity_ != 0) EvictUntil(capacity_);
  }
  return DropDeadSegments();
}

}  // namespace kvt
