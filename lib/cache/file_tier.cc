#include "cache/file_tier.h"

#include <algorithm>
#include <vector>

#include "codec/frame.h"

namespace kvt {
namespace {

// Small enough that an eviction frees disk soon, large enough that a big cache has hundreds of files, not
// thousands.
uint64_t SegmentBytes(uint64_t capacity) {
  if (capacity == 0) return uint64_t{256} << 20;
  return std::clamp<uint64_t>(capacity / 128, uint64_t{64} << 10, uint64_t{512} << 20);
}

}  // namespace

struct FileTier::Put : StagedPut {
  Entry entry;
};

FileTier::FileTier(std::shared_ptr<Runtime> runtime, std::unique_ptr<CacheDirectory> directory,
                   uint64_t capacity)
    : runtime_(std::move(runtime)),
      directory_(std::move(directory)),
      capacity_(capacity),
      segment_bytes_(SegmentBytes(capacity)) {}

StatusOr<std::unique_ptr<FileTier>> FileTier::Open(std::shared_ptr<Runtime> runtime, const std::string& path,
                                                   uint64_t capacity) {
  if (path.empty())
    return Error(KVT_ERR_INVALID_ARGUMENT, "url: file: needs a path, such as file:/var/cache/kvartet");
  if (capacity != 0 && capacity < kMinCapacity) {
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url option capacity is ", capacity,
                                                        " bytes, the least for file: is ", kMinCapacity));
  }
  KVT_ASSIGN_OR_RETURN(auto directory, CacheDirectory::Open(path));
  std::unique_ptr<FileTier> tier(new FileTier(std::move(runtime), std::move(directory), capacity));
  MutexLock lock(&tier->write_mu_);
  const Status rebuilt = tier->Rebuild();
  tier->closed_ = !rebuilt.ok();
  KVT_RETURN_IF_ERROR(rebuilt);
  return tier;
}

FileTier::WriteLock::~WriteLock() {
  const auto lines = std::exchange(tier_->log_, {});
  tier_->write_mu_.Unlock();
  for (const auto& [level, line] : lines) tier_->runtime_->Log(level, line);
}

void FileTier::LogLater(int32_t level, const Status& why) {
  log_.emplace_back(level, absl::StrCat("cache: ", why.message()));
}

uint64_t FileTier::slack_bytes() const {
  return std::max(capacity_ / 4, 2 * segment_bytes_) + segment_bytes_;
}

uint64_t FileTier::BatchBytes() const {
  constexpr uint64_t kMost = uint64_t{16} << 20;
  return capacity_ == 0 ? kMost : std::min(kMost, capacity_ / 8 / runtime_->threads());
}

StatusOr<std::unique_ptr<StagedPut>> FileTier::Stage(const Key& key, const FrameRef& frame) {
  const uint64_t record = RecordBytes(frame.bytes.size());
  if (capacity_ != 0 && record > capacity_) {
    return Error(KVT_ERR_LIMIT,
                 absl::StrCat("the frame takes ", record, " bytes, the capacity is ", capacity_));
  }
  WriteLock lock(this);
  KVT_RETURN_IF_ERROR(CheckOpen());
  KVT_RETURN_IF_ERROR(MakeRoom(record));
  KVT_RETURN_IF_ERROR(EnsureActive(record));
  auto put = std::make_unique<Put>();
  put->entry.key = key;
  put->entry.segment = active_;
  put->entry.length = frame.bytes.size();
  put->entry.sequence = next_sequence_++;
  uint8_t header[kRecordHeaderBytes];
  WriteRecordHeader({RecordKind::kFrame, put->entry.sequence, put->entry.length, key}, directory_->salt(),
                    header);
  KVT_ASSIGN_OR_RETURN(put->entry.offset, Append(Bytes(header), frame.bytes));
  active_->min_sequence = std::min(active_->min_sequence, put->entry.sequence);
  MutexLock index_lock(&mu_);
  active_->live += record;
  ++active_->staged;
  live_ += record;
  ++staged_;
  return put;
}

Status FileTier::Commit(std::unique_ptr<StagedPut> staged) {
  Entry& entry = static_cast<Put&>(*staged).entry;
  const uint64_t record = RecordBytes(entry.length);
  Status flushed;
  {
    WriteLock lock(this);
    flushed = SyncUpTo(entry.segment, entry.offset + record);
  }
  MutexLock lock(&mu_);
  --entry.segment->staged;
  const auto removal = removals_.find(entry.key);
  const bool removed = removal != removals_.end() && removal->second > entry.sequence;
  if (--staged_ == 0) removals_.clear();
  const auto found = index_.find(entry.key);
  // The next open would show the one that was staged last, so this does too.
  const bool superseded = found != index_.end() && found->second->sequence > entry.sequence;
  if (!flushed.ok() || removed || superseded) {
    entry.segment->live -= record;
    live_ -= record;
    return flushed;
  }
  // Its record needs no tombstone: the new one has a greater sequence number.
  if (found != index_.end()) Forget(found->second);
  bytes_ += entry.length;
  order_.push_front(std::move(entry));
  index_.emplace(order_.front().key, order_.begin());
  return OkStatus();
}

StatusOr<FrameRef> FileTier::Get(const Key& key, FrameScratch* scratch) {
  std::shared_ptr<Segment> segment;
  uint64_t offset = 0, length = 0;
  {
    MutexLock lock(&mu_);
    const auto found = index_.find(key);
    if (found == index_.end())
      return Error(KVT_ERR_NOT_FOUND, absl::StrCat("no frame under ", key.ToString()));
    order_.splice(order_.begin(), order_, found->second);
    segment = found->second->segment;
    offset = found->second->offset;
    length = found->second->length;
  }
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<FrameBuffer> buffer, scratch->Take(length));
  KVT_RETURN_IF_ERROR(segment->file->Read(offset + kRecordHeaderBytes, MutableBytes(buffer->data(), length)));
  return FrameRef{Bytes(buffer->data(), length), std::move(buffer)};
}

StatusOr<FrameRef> FileTier::Front(const Key& key, FrameScratch* scratch) {
  std::shared_ptr<Segment> segment;
  uint64_t offset = 0, length = 0;
  {
    MutexLock lock(&mu_);
    const auto found = index_.find(key);
    if (found == index_.end())
      return Error(KVT_ERR_NOT_FOUND, absl::StrCat("no frame under ", key.ToString()));
    segment = found->second->segment;
    offset = found->second->offset + kRecordHeaderBytes;
    length = found->second->length;
  }
  uint8_t start[kFramePrefixBytes];
  if (length < sizeof start) return Error(KVT_ERR_CORRUPT, absl::StrCat("frame of ", length, " bytes"));
  KVT_RETURN_IF_ERROR(segment->file->Read(offset, MutableBytes(start)));
  KVT_ASSIGN_OR_RETURN(const uint64_t bytes, FrameFrontBytes(Bytes(start)));
  if (bytes > length)
    return Error(KVT_ERR_CORRUPT, absl::StrCat("frame of ", length, " bytes: its payload begins at ", bytes));
  KVT_ASSIGN_OR_RETURN(std::shared_ptr<FrameBuffer> buffer, scratch->Take(bytes));
  KVT_RETURN_IF_ERROR(segment->file->Read(offset, MutableBytes(buffer->data(), bytes)));
  return FrameRef{Bytes(buffer->data(), bytes), std::move(buffer)};
}

bool FileTier::Contains(const Key& key) const {
  MutexLock lock(&mu_);
  return index_.contains(key);
}

StatusOr<uint64_t> FileTier::Remove(absl::Span<const Key> keys) {
  WriteLock lock(this);
  KVT_RETURN_IF_ERROR(CheckOpen());
  std::vector<RecordHeader> tombstones;
  {
    MutexLock index_lock(&mu_);
    for (const Key& key : keys) {
      const auto found = index_.find(key);
      if (found == index_.end()) continue;
      Forget(found->second);
      tombstones.push_back({RecordKind::kTombstone, next_sequence_++, 0, key});
      if (staged_ != 0) removals_[key] = tombstones.back().sequence;
    }
  }
  // First, for it may make the room that tombstones need on a full disk, and may make them needless.
  KVT_RETURN_IF_ERROR(DropDeadSegments());
  KVT_RETURN_IF_ERROR(AppendTombstones(nullptr, tombstones));
  return tombstones.size();
}

Status FileTier::Flush() {
  WriteLock lock(this);
  if (active_ == nullptr) return OkStatus();
  uint64_t size = 0;
  {
    MutexLock index_lock(&mu_);
    size = active_->size;
  }
  return SyncUpTo(active_, size);
}

void FileTier::Close() {
  {
    // Before the flush: nothing is appended behind it, and nothing written once the directory is let go.
    WriteLock lock(this);
    if (std::exchange(closed_, true)) return;
  }
  Status flushed = Flush();
  WriteLock lock(this);
  if (flushed.ok()) flushed = SaveUseOrder();
  if (!flushed.ok()) LogLater(KVT_LOG_ERROR, Annotate(flushed, "close"));
  active_.reset();
  directory_->Unlock();
  MutexLock index_lock(&mu_);
  index_.clear();
  order_.clear();
  segments_.clear();
  bytes_ = live_ = physical_ = 0;
}

uint64_t FileTier::physical_bytes() const {
  MutexLock lock(&mu_);
  return physical_;
}

TierStats FileTier::stats() const {
  MutexLock lock(&mu_);
  TierStats stats;
  stats.frames = index_.size();
  stats.bytes = bytes_;
  stats.capacity_bytes = capacity_;
  stats.evictions = evictions_;
  stats.torn = torn_;
  return stats;
}

}  // namespace kvt
