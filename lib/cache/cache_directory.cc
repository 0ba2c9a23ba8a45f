#include "cache/cache_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace kvt {
namespace {

constexpr char kLockName[] = "lock";
constexpr char kMarkerName[] = "kvartet-cache";
constexpr char kOrderName[] = "order";
constexpr char kDraftName[] = "new";
constexpr char kSegmentSuffix[] = ".seg";

constexpr size_t kMarkerBytes = 64;
constexpr absl::string_view kMarkerMagic = "KVTCACHE";
constexpr absl::string_view kOrderMagic = "KVTORDER";
constexpr size_t kOrderNext = 8, kOrderCount = 16, kOrderChecksum = 24, kOrderHeaderBytes = 32;
constexpr size_t kMarkerVersion = 8, kMarkerSalt = 16, kMarkerChecksum = 56;

std::string SegmentName(uint64_t id) { return absl::StrFormat("%016x%s", id, kSegmentSuffix); }

}  // namespace

StatusOr<std::unique_ptr<CacheDirectory>> CacheDirectory::Open(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoError(errno, "mkdir", path);
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == ENOTDIR)
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("url path ", path, " is not a directory"));
  if (fd < 0) return ErrnoError(errno, "open", path);
  std::unique_ptr<CacheDirectory> directory(new CacheDirectory(path, fd));
  KVT_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory->List());
  if (std::find(names.begin(), names.end(), kMarkerName) == names.end()) {
    for (const std::string& name : names) {
      if (name == kLockName || name == kDraftName || name == "lost+found") continue;
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("url path ", path, " is no cache directory and holds \"", name,
                                "\"; name an empty or a new one"));
    }
  }
  KVT_RETURN_IF_ERROR(directory->Lock());
  KVT_RETURN_IF_ERROR(directory->ReadOrCreateMarker());
  return directory;
}

CacheDirectory::~CacheDirectory() {
  Unlock();
  close(fd_);
}

StatusOr<std::vector<std::string>> CacheDirectory::List() const {
  const int fd = openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoError(errno, "open", path_);
  DIR* stream = fdopendir(fd);
  if (stream == nullptr) {
    const int error = errno;
    close(fd);
    return ErrnoError(error, "list", path_);
  }
  const auto closer = absl::MakeCleanup([stream] { closedir(stream); });
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream);
    if (entry == nullptr) {
      if (errno != 0) return ErrnoError(errno, "list", path_);
      return names;
    }
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
}

Status CacheDirectory::Lock() {
  const int fd = openat(fd_, kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0) return ErrnoError(errno, "open", PathOf(kLockName));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    char text[32] = {};
    const ssize_t size = error == EWOULDBLOCK ? pread(fd, text, sizeof text - 1, 0) : 0;
    close(fd);
    if (error != EWOULDBLOCK) return ErrnoError(error, "lock", PathOf(kLockName));
    const absl::string_view pid =
        absl::StripAsciiWhitespace(absl::string_view(text, size > 0 ? static_cast<size_t>(size) : 0));
    return Error(KVT_ERR_LOCKED, absl::StrCat("cache directory ", path_, " is open in process ",
                                              pid.empty() ? "(unknown)" : pid));
  }
  lock_fd_ = fd;
  lock_process_ = getpid();
  // For the message above only, so a full disk does not matter here.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) return OkStatus();
  return OkStatus();
}

void CacheDirectory::Unlock() {
  if (lock_fd_ < 0) return;
  // Explicitly: a child that was forked meanwhile shares the lock. It is not the child's to give up.
  if (getpid() == lock_process_) flock(lock_fd_, LOCK_UN);
  close(lock_fd_);
  lock_fd_ = -1;
}

Status CacheDirectory::ReadOrCreateMarker() {
  const std::string path = PathOf(kMarkerName);
  const int fd = openat(fd_, kMarkerName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT ? CreateMarker() : ErrnoError(errno, "open", path);
  uint8_t marker[kMarkerBytes] = {};
  struct stat info;
  const bool file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const ssize_t size = file ? pread(fd, marker, sizeof marker, 0) : 0;
  const int error = errno;
  close(fd);
  if (size < 0) return ErrnoError(error, "read", path);
  if (AsText(Bytes(marker, kMarkerMagic.size())) != kMarkerMagic || size < ssize_t{kMarkerVersion} + 4)
    return Error(KVT_ERR_CORRUPT, absl::StrCat(path, " is not the marker of a cache directory"));
  const uint32_t version = LoadLe<uint32_t>(marker + kMarkerVersion);
  if (version != kFormatVersion) {
    return Error(KVT_ERR_VERSION,
                 absl::StrCat(path, ": format version ", version, "; this library knows ", kFormatVersion));
  }
  if (size != ssize_t{kMarkerBytes} ||
      LoadLe<uint64_t>(marker + kMarkerChecksum) != XXH3_64bits(marker, kMarkerChecksum)) {
    return Error(KVT_ERR_CORRUPT, absl::StrCat(path, ": the checksum does not hold"));
  }
  salt_ = LoadLe<uint64_t>(marker + kMarkerSalt);
  return OkStatus();
}

Status CacheDirectory::CreateMarker() {
  if (getrandom(&salt_, sizeof salt_, 0) != ssize_t{sizeof salt_})
    return ErrnoError(errno, "getrandom", PathOf(kMarkerName));
  uint8_t marker[kMarkerBytes] = {};
  std::copy(kMarkerMagic.begin(), kMarkerMagic.end(), marker);
  StoreLe<uint32_t>(marker + kMarkerVersion, kFormatVersion);
  StoreLe<uint64_t>(marker + kMarkerSalt, salt_);
  StoreLe<uint64_t>(marker + kMarkerChecksum, XXH3_64bits(marker, kMarkerChecksum));
  return Replace(kMarkerName, Bytes(marker));
}

Status CacheDirectory::Replace(const std::string& name, Bytes bytes) const {
  const std::string path = PathOf(kDraftName);
  unlinkat(fd_, kDraftName, 0);
  {
    KVT_ASSIGN_OR_RETURN(const auto file, SegmentFile::Open(fd_, path, kDraftName, true));
    KVT_RETURN_IF_ERROR(file->Write(0, {bytes}));
    KVT_RETURN_IF_ERROR(file->Sync());
  }
  if (renameat(fd_, kDraftName, fd_, name.c_str()) != 0) return ErrnoError(errno, "rename", path);
  return SyncNames();
}

Status CacheDirectory::WriteUseOrder(const UseOrder& order) const {
  std::string bytes(kOrderMagic);
  AppendLe<uint64_t>(&bytes, order.next_sequence);
  AppendLe<uint64_t>(&bytes, order.sequences.size());
  AppendLe<uint64_t>(&bytes, 0);
  for (const uint64_t sequence : order.sequences) AppendLe<uint64_t>(&bytes, sequence);
  StoreLe<uint64_t>(&bytes[kOrderChecksum], XXH3_64bits_withSeed(bytes.data(), bytes.size(), salt_));
  return Replace(kOrderName, AsBytes(bytes));
}

CacheDirectory::UseOrder CacheDirectory::ReadUseOrder(uint64_t frames) const {
  const auto file = SegmentFile::Open(fd_, PathOf(kOrderName), kOrderName, false);
  if (!file.ok()) return {};
  const auto size = (*file)->Size();
  // There may be twice as many as now: some went after it was written.
  if (!size.ok() || *size < kOrderHeaderBytes || *size / 16 > frames + (uint64_t{1} << 16)) return {};
  std::string bytes(*size, '\0');
  if (!(*file)->Read(0, MutableBytes(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size())).ok()) return {};
  const uint64_t checksum = LoadLe<uint64_t>(&bytes[kOrderChecksum]);
  StoreLe<uint64_t>(&bytes[kOrderChecksum], 0);
  if (checksum != XXH3_64bits_withSeed(bytes.data(), bytes.size(), salt_)) return {};
  UseOrder order;
  order.next_sequence = LoadLe<uint64_t>(&bytes[kOrderNext]);
  if (bytes.substr(0, kOrderNext) != kOrderMagic ||
      LoadLe<uint64_t>(&bytes[kOrderCount]) != (bytes.size() - kOrderHeaderBytes) / 8) {
    return {};
  }
  for (size_t at = kOrderHeaderBytes; at + 8 <= bytes.size(); at += 8)
    order.sequences.push_back(LoadLe<uint64_t>(&bytes[at]));
  return order;
}

Status CacheDirectory::SyncNames() const {
  if (fsync(fd_) != 0) return ErrnoError(errno, "fsync", path_);
  return OkStatus();
}

StatusOr<std::vector<uint64_t>> CacheDirectory::Segments() const {
  KVT_ASSIGN_OR_RETURN(const std::vector<std::string> names, List());
  std::vector<uint64_t> ids;
  for (const std::string& name : names) {
    uint64_t id = 0;
    if (absl::SimpleHexAtoi(absl::StripSuffix(name, kSegmentSuffix), &id) && SegmentName(id) == name)
      ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

StatusOr<std::unique_ptr<SegmentFile>> CacheDirectory::Segment(uint64_t id, bool create) const {
  const std::string name = SegmentName(id);
  return SegmentFile::Open(fd_, PathOf(name), name, create);
}

StatusOr<std::unique_ptr<SegmentFile>> CacheDirectory::CreateSegment(uint64_t id) const {
  auto created = Segment(id, true);
  // The directory is gone, not something that the caller named.
  if (CodeOf(created.status()) == KVT_ERR_NOT_FOUND) return Error(KVT_ERR_IO, created.status().message());
  KVT_ASSIGN_OR_RETURN(auto file, std::move(created));
  KVT_RETURN_IF_ERROR(SyncNames());
  return file;
}

Status CacheDirectory::CheckSegment(uint64_t id, const SegmentFile& file) const {
  const std::string name = SegmentName(id);
  struct stat info;
  const int result = fstatat(fd_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW);
  if (result != 0 && errno != ENOENT) return ErrnoError(errno, "stat", PathOf(name));
  if (result != 0 || info.st_dev != file.device() || info.st_ino != file.inode()) {
    return Error(KVT_ERR_IO, absl::StrCat(PathOf(name),
                                          " was deleted or replaced while the cache was open; what was being "
                                          "stored in it is lost"));
  }
  return OkStatus();
}

Status CacheDirectory::RemoveSegment(uint64_t id) const {
  const std::string name = SegmentName(id);
  if (unlinkat(fd_, name.c_str(), 0) != 0 && errno != ENOENT)
    return ErrnoError(errno, "unlink", PathOf(name));
  return SyncNames();
}

}  // namespace kvt
