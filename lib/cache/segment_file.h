// SegmentFile: one append-only file of records, open for as long as the object lives, even once unlinked.
//
// Positional calls only, so any thread may read while another appends; its user orders appends, syncs and
// truncations.
#ifndef KVARTET_LIB_CACHE_SEGMENT_FILE_H_
#define KVARTET_LIB_CACHE_SEGMENT_FILE_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "cache/record.h"

namespace kvt {

class SegmentFile {
 public:
  // Errors name the path.
  static StatusOr<std::unique_ptr<SegmentFile>> Open(int directory, std::string path, const std::string& name,
                                                     bool create);
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  const std::string& path() const { return path_; }
  // What the file is, whatever its name becomes.
  dev_t device() const { return device_; }
  ino_t inode() const { return inode_; }

  // Writes the pieces one after another from `offset` on. After an error part of them may be written.
  Status Write(uint64_t offset, std::initializer_list<Bytes> pieces);
  // Fills `out`; KVT_ERR_CORRUPT when the file ends before.
  Status Read(uint64_t offset, MutableBytes out) const;
  Status Sync();
  Status Truncate(uint64_t size);
  StatusOr<uint64_t> Size() const;

  // Calls `visit(offset, header)` for every record whose header holds and whose bytes are all there; stops at
  // its first error. Where a header does not hold, looks for the next one that does; `*gaps` is increased by
  // the number of such places.
  Status Scan(uint64_t salt, uint64_t* gaps,
              const std::function<Status(uint64_t, const RecordHeader&)>& visit) const;

 private:
  SegmentFile(int fd, std::string path, dev_t device, ino_t inode)
      : fd_(fd), path_(std::move(path)), device_(device), inode_(inode) {}
  StatusOr<uint64_t> NextRecord(uint64_t from, uint64_t size, uint64_t salt) const;

  const int fd_;
  const std::string path_;
  const dev_t device_;
  const ino_t inode_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CACHE_SEGMENT_FILE_H_
