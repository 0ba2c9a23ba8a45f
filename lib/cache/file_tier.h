// FileTier: frames in a directory of append-only segments; docs/file-format.md has the format and what
// survives what.
//
// Invariants: a frame is in the index only after its bytes are flushed; every segment but the newest is
// flushed whole; a frame's place changes only by compaction, and readers keep the file that they read from.
// Thread-safe: write_mu_ orders everything that changes files and is taken before mu_, which guards the index
// and is never held during a disk call.
#ifndef KVARTET_LIB_CACHE_FILE_TIER_H_
#define KVARTET_LIB_CACHE_FILE_TIER_H_

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "cache/cache_directory.h"
#include "cache/segment_file.h"
#include "cache/tier.h"

namespace kvt {

class FileTier : public Tier {
 public:
  static constexpr uint64_t kMinCapacity = uint64_t{1} << 20;

  // Opens a directory and rebuilds the index. `capacity` bounds the records of visible frames; 0: no limit.
  static StatusOr<std::unique_ptr<FileTier>> Open(std::shared_ptr<Runtime> runtime, const std::string& path,
                                                  uint64_t capacity);
  ~FileTier() override { FileTier::Close(); }

  StatusOr<std::unique_ptr<StagedPut>> Stage(const Key& key, const FrameRef& frame) override
      ABSL_LOCKS_EXCLUDED(write_mu_, mu_);
  Status Commit(std::unique_ptr<StagedPut> put) override ABSL_LOCKS_EXCLUDED(write_mu_, mu_);
  StatusOr<FrameRef> Get(const Key& key, FrameScratch* scratch) override ABSL_LOCKS_EXCLUDED(write_mu_, mu_);
  StatusOr<FrameRef> Front(const Key& key, FrameScratch* scratch) override ABSL_LOCKS_EXCLUDED(mu_);
  bool Contains(const Key& key) const override ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<uint64_t> Remove(absl::Span<const Key> keys) override ABSL_LOCKS_EXCLUDED(write_mu_, mu_);
  bool KeepsBuffers() const override { return false; }
  uint64_t BatchBytes() const override;
  uint64_t Shed(uint64_t) override { return 0; }
  Status Flush() override ABSL_LOCKS_EXCLUDED(write_mu_, mu_);
  void Close() override ABSL_LOCKS_EXCLUDED(write_mu_, mu_);
  TierStats stats() const override ABSL_LOCKS_EXCLUDED(mu_);

  // Bytes of all segments.
  uint64_t physical_bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  // What physical_bytes() may be beyond the capacity, but for one record that is larger than a segment.
  uint64_t slack_bytes() const;

 private:
  struct Segment {
    uint64_t id = 0;
    std::unique_ptr<SegmentFile> file;
    // Under write_mu_.
    uint64_t synced = 0;  // bytes known to be flushed
    bool syncing = false;
    kvt_status_t failure = KVT_OK;  // of a flush: what lies beyond `synced` is gone
    std::string failure_text;
    uint64_t min_sequence = UINT64_MAX;  // of its frames, also of those that are no longer visible
    uint64_t last_tombstone = 0;         // greatest sequence number of its tombstones
    // Under mu_.
    uint64_t size = 0;
    uint64_t live = 0;    // bytes of records that are visible or staged
    uint64_t staged = 0;  // puts, copies and tombstones under way; until then it stays
  };
  struct Entry {
    Key key;
    std::shared_ptr<Segment> segment;
    uint64_t offset = 0;  // of the record
    uint64_t length = 0;  // of the frame
    uint64_t sequence = 0;
  };
  using Order = std::list<Entry>;  // most recently used first
  struct Put;
  struct Found;

  // Holds write_mu_. What is to be logged meanwhile is logged after it: the host's sink may call the cache.
  class ABSL_SCOPED_LOCKABLE WriteLock {
   public:
    explicit WriteLock(FileTier* tier) ABSL_EXCLUSIVE_LOCK_FUNCTION(tier->write_mu_) : tier_(tier) {
      tier_->write_mu_.Lock();
    }
    ~WriteLock() ABSL_UNLOCK_FUNCTION();
    WriteLock(const WriteLock&) = delete;
    WriteLock& operator=(const WriteLock&) = delete;

   private:
    FileTier* const tier_;
  };

  FileTier(std::shared_ptr<Runtime> runtime, std::unique_ptr<CacheDirectory> directory, uint64_t capacity);
  void LogLater(int32_t level, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);

  // file_tier_open.cc
  Status Rebuild() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);
  Status ScanSegment(Segment* segment, bool newest, FrameScratch* scratch, Found* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);
  static void SortByUse(const CacheDirectory::UseOrder& order, std::vector<Entry>* entries);

  // file_tier_log.cc: appends to the newest segment.
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);
  // Makes active_ a segment with room for a record of `bytes`; may let go of write_mu_ meanwhile.
  Status EnsureActive(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);
  // Appends a record (or, for tombstones, several headers) to active_, which has room; returns its offset.
  StatusOr<uint64_t> Append(Bytes header, Bytes frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);
  // Flushes a segment up to `end`, together with other threads; may let go of write_mu_ meanwhile.
  Status SyncUpTo(const std::shared_ptr<Segment>& segment, uint64_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_);
  // Writes down the order of use, for the next open.
  Status SaveUseOrder() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  // Appends those of `tombstones` that hide a record outside of `from`.
  Status AppendTombstones(const Segment* from, absl::Span<const RecordHeader> tombstones)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_) ABSL_LOCKS_EXCLUDED(mu_);

  // file_tier_space.cc: eviction and compaction.
  Status MakeRoom(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  void EvictUntil(uint64_t live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(Order::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status DropDeadSegments() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  Status DropSegment(const std::shared_ptr<Segment>& segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<Segment> Victim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  Status Compact(const std::shared_ptr<Segment>& victim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds to segment->staged.
  void Pin(Segment* segment, int64_t count) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the segment was not dropped.
  bool IsKept(const Segment& segment) const ABSL_LOCKS_EXCLUDED(mu_);
  bool IsAt(const Key& key, const Segment& segment, uint64_t offset) const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a tombstone hides a record of a segment other than `from`.
  bool Hides(uint64_t tombstone, const Segment* from) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_, mu_);
  bool IsDead(const Segment& segment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mu_, mu_);

  const std::shared_ptr<Runtime> runtime_;
  const std::unique_ptr<CacheDirectory> directory_;
  const uint64_t capacity_;
  const uint64_t segment_bytes_;

  Mutex write_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  CondVar synced_;
  std::vector<std::pair<int32_t, std::string>> log_ ABSL_GUARDED_BY(write_mu_);
  bool closed_ ABSL_GUARDED_BY(write_mu_) = false;
  bool compacting_ ABSL_GUARDED_BY(write_mu_) = false;
  std::shared_ptr<Segment> active_ ABSL_GUARDED_BY(write_mu_);  // null: the next append makes one
  uint64_t next_segment_ ABSL_GUARDED_BY(write_mu_) = 1;
  uint64_t next_sequence_ ABSL_GUARDED_BY(write_mu_) = 1;

  mutable Mutex mu_;
  Order order_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Key, Order::iterator> index_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, std::shared_ptr<Segment>> segments_ ABSL_GUARDED_BY(mu_);
  // Removals while puts are staged: a put that began before a removal of its key counts as removed by it.
  absl::flat_hash_map<Key, uint64_t> removals_ ABSL_GUARDED_BY(mu_);
  uint64_t staged_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t physical_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t live_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t evictions_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t torn_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_FILE_TIER_H_
