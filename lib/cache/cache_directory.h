// CacheDirectory: a directory that one process at a time holds by a lock, with a marker that says what it is.
//
// Invariant: while it is open no other CacheDirectory, of this process or another, has the same directory.
// Its user orders the calls.
#ifndef KVARTET_LIB_CACHE_CACHE_DIRECTORY_H_
#define KVARTET_LIB_CACHE_CACHE_DIRECTORY_H_

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/segment_file.h"

namespace kvt {

class CacheDirectory {
 public:
  static constexpr uint32_t kFormatVersion = 1;

  // Makes the directory and its marker if they are missing. KVT_ERR_LOCKED; KVT_ERR_VERSION;
  // KVT_ERR_PERMISSION; KVT_ERR_NOT_FOUND (its parent); KVT_ERR_INVALID_ARGUMENT (no directory, or one with
  // other things in it); KVT_ERR_CORRUPT (the marker); KVT_ERR_DISK_FULL; KVT_ERR_IO. All name the path.
  static StatusOr<std::unique_ptr<CacheDirectory>> Open(const std::string& path);
  ~CacheDirectory();
  CacheDirectory(const CacheDirectory&) = delete;
  CacheDirectory& operator=(const CacheDirectory&) = delete;

  // The seed of record checksums; random, made with the directory.
  uint64_t salt() const { return salt_; }

  // Ids of the segments, ascending.
  StatusOr<std::vector<uint64_t>> Segments() const;
  StatusOr<std::unique_ptr<SegmentFile>> OpenSegment(uint64_t id) const { return Segment(id, false); }
  // Durable in the directory when it returns.
  StatusOr<std::unique_ptr<SegmentFile>> CreateSegment(uint64_t id) const;
  Status RemoveSegment(uint64_t id) const;
  // That the file of a segment still has its name here: what is written to one that was deleted, alone or
  // with the directory, is gone once it is closed. KVT_ERR_IO names the path.
  Status CheckSegment(uint64_t id, const SegmentFile& file) const;

  // The order of use that was written last: sequence numbers of frames, least recently used first, and the
  // number that was next. Empty when there is none that holds: it is a hint.
  struct UseOrder {
    uint64_t next_sequence = 0;
    std::vector<uint64_t> sequences;
  };
  // Not read when it is much longer than the order of `frames` frames.
  UseOrder ReadUseOrder(uint64_t frames) const;
  Status WriteUseOrder(const UseOrder& order) const;

  // Lets other processes have the directory.
  void Unlock();

 private:
  CacheDirectory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  StatusOr<std::unique_ptr<SegmentFile>> Segment(uint64_t id, bool create) const;
  StatusOr<std::vector<std::string>> List() const;
  Status Lock();
  Status ReadOrCreateMarker();
  Status CreateMarker();
  // Replaces a file as a whole; flushed when it returns.
  Status Replace(const std::string& name, Bytes bytes) const;
  Status SyncNames() const;
  std::string PathOf(const std::string& name) const { return absl::StrCat(path_, "/", name); }

  const std::string path_;
  const int fd_;
  int lock_fd_ = -1;
  int lock_process_ = 0;  // who took the lock
  uint64_t salt_ = 0;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_CACHE_DIRECTORY_H_
