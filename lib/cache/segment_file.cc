#include "cache/segment_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace kvt {

StatusOr<std::unique_ptr<SegmentFile>> SegmentFile::Open(int directory, std::string path,
                                                         const std::string& name, bool create) {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT | O_EXCL : 0);
  const int fd = openat(directory, name.c_str(), flags, 0600);
  if (fd < 0) return ErrnoError(errno, "open", path);
  struct stat info;
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoError(error, "stat", path);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return Error(KVT_ERR_IO, absl::StrCat(path, " is not a file"));
  }
  return std::unique_ptr<SegmentFile>(new SegmentFile(fd, std::move(path), info.st_dev, info.st_ino));
}

SegmentFile::~SegmentFile() { close(fd_); }

Status SegmentFile::Write(uint64_t offset, std::initializer_list<Bytes> pieces) {
  std::vector<iovec> left;
  for (const Bytes piece : pieces) {
    if (!piece.empty()) left.push_back({const_cast<uint8_t*>(piece.data()), piece.size()});
  }
  size_t next = 0;
  while (next < left.size()) {
    const ssize_t written =
        pwritev(fd_, &left[next], static_cast<int>(left.size() - next), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "write", path_);
    }
    if (written == 0) return ErrnoError(ENOSPC, "write", path_);
    offset += static_cast<uint64_t>(written);
    size_t done = static_cast<size_t>(written);
    while (next < left.size() && done >= left[next].iov_len) done -= left[next++].iov_len;
    if (next == left.size()) break;
    left[next].iov_base = static_cast<uint8_t*>(left[next].iov_base) + done;
    left[next].iov_len -= done;
  }
  return OkStatus();
}

Status SegmentFile::Read(uint64_t offset, MutableBytes out) const {
  while (!out.empty()) {
    const ssize_t got = pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "read", path_);
    }
    if (got == 0)
      return Error(KVT_ERR_CORRUPT, absl::StrCat(path_, " ends at ", offset, ", ", out.size(),
                                                 " bytes before the end of a record"));
    offset += static_cast<uint64_t>(got);
    out.remove_prefix(static_cast<size_t>(got));
  }
  return OkStatus();
}

Status SegmentFile::Sync() {
  if (fdatasync(fd_) != 0) return ErrnoError(errno, "fdatasync", path_);
  return OkStatus();
}

Status SegmentFile::Truncate(uint64_t size) {
  if (ftruncate(fd_, static_cast<off_t>(size)) != 0) return ErrnoError(errno, "truncate", path_);
  return OkStatus();
}

StatusOr<uint64_t> SegmentFile::Size() const {
  struct stat info;
  if (fstat(fd_, &info) != 0) return ErrnoError(errno, "stat", path_);
  return static_cast<uint64_t>(info.st_size);
}

StatusOr<uint64_t> SegmentFile::NextRecord(uint64_t from, uint64_t size, uint64_t salt) const {
  constexpr uint64_t kWindow = uint64_t{1} << 20;
  std::vector<uint8_t> window;
  while (from + kRecordHeaderBytes <= size) {
    window.resize(std::min(kWindow, size - from));
    KVT_RETURN_IF_ERROR(Read(from, absl::MakeSpan(window)));
    uint64_t at = 0;
    for (; at + kRecordHeaderBytes <= window.size(); at += kRecordAlignment) {
      if (ReadRecordHeader(&window[at], salt)) return from + at;
    }
    from += at;
  }
  return size;
}

Status SegmentFile::Scan(uint64_t salt, uint64_t* gaps,
                         const std::function<Status(uint64_t, const RecordHeader&)>& visit) const {
  KVT_ASSIGN_OR_RETURN(const uint64_t size, Size());
  uint64_t offset = 0;
  while (offset < size) {
    uint8_t bytes[kRecordHeaderBytes];
    std::optional<RecordHeader> header;
    if (offset + kRecordHeaderBytes <= size) {
      KVT_RETURN_IF_ERROR(Read(offset, MutableBytes(bytes)));
      header = ReadRecordHeader(bytes, salt);
    }
    if (header && RecordBytes(header->length) <= size - offset) {
      KVT_RETURN_IF_ERROR(visit(offset, *header));
      offset += RecordBytes(header->length);
      continue;
    }
    ++*gaps;
    KVT_ASSIGN_OR_RETURN(offset, NextRecord(offset + kRecordAlignment, size, salt));
  }
  return OkStatus();
}

}  // namespace kvt
