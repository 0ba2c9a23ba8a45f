// Faults of the world around the file tier: killed writers, full disks, other processes, permissions, strange
// directories. Each gives its own status and names the path.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "absl/strings/match.h"
#include "cache/cache_directory.h"
#include "unit/cache/child.h"
#include "unit/cache/fixture.h"

namespace kvt {
namespace {

StatusOr<std::shared_ptr<Cache>> OpenAt(const std::string& path, const std::string& options = "") {
  return Cache::Open(MakeRuntime(), absl::StrCat("file:", path, options));
}

// The code of an attempt to open, whose text must name the path.
kvt_status_t OpenError(const std::string& path, const std::string& in_text) {
  const Status status = OpenAt(path).status();
  EXPECT_TRUE(absl::StrContains(status.message(), in_text)) << status;
  return CodeOf(status);
}

// Sizes from one block to about 1 MiB, so that a kill can hit in mid-write.
uint32_t TokensOf(uint32_t number) { return number % 4 == 0 ? 8192 : 16 << (number % 7); }

// Stores batches of frames from `first` on for ever; reports each number once its store has completed.
std::string WriteForEver(const std::string& path, uint32_t first, int out) {
  const auto cache = OpenAt(path);
  if (!cache.ok()) return std::string(cache.status().message());
  constexpr uint32_t kBatch = 3;
  for (uint32_t number = first;; number += kBatch) {
    std::string frames;
    std::vector<uint64_t> lengths;
    for (uint32_t i = 0; i < kBatch; ++i) {
      const std::string frame = MakeFrame(number + i, TokensOf(number + i));
      lengths.push_back(frame.size());
      frames += frame;
    }
    const auto keys = MakeKeys(number, kBatch);
    std::vector<kvt_status_t> results(kBatch, -1);
    const auto operation = (*cache)->SubmitPut(keys, reinterpret_cast<const uint8_t*>(frames.data()),
                                               lengths.data(), results.data(), Soon());
    if (!operation.ok() || !(*cache)->Wait(*operation, Soon(), nullptr).ok()) return "";
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t done = number + i;
      if (write(out, &done, sizeof done) != sizeof done) return "";
    }
  }
}

TEST(CacheFault, KilledWriterLosesNothingThatItReported) {
  TempDir dir;
  const std::string path = dir.path() + "/cache";
  std::mt19937 random(20);  // the choice of places; what is hit varies with the machine
  std::vector<uint32_t> reported;
  uint32_t next = 0, kills = 0;
  uint64_t torn = 0;
  while (reported.size() < 200 || kills < 25) {
    Child child([&](int out) { return WriteForEver(path, next, out); });
    uint32_t most = next;
    for (uint32_t reports = random() % 12; reports > 0; --reports) {
      uint32_t number = 0;
      ASSERT_TRUE(child.Read(&number, sizeof number));
      reported.push_back(number);
      most = std::max(most, number + 1);
    }
    // Somewhere in the stores that follow.
    const timespec wait = {0, static_cast<long>(random() % 6000000)};
    nanosleep(&wait, nullptr);
    child.Kill();
    ++kills;
    // What it reported before the kill arrived counts too.
    for (uint32_t number = 0; child.Read(&number, sizeof number);) {
      reported.push_back(number);
      most = std::max(most, number + 1);
    }
    const auto cache = OpenAt(path);
    ASSERT_TRUE(cache.ok()) << cache.status();
    for (const uint32_t number : reported) {
      const auto got = (*cache)->Get(MakeKey(number));
      ASSERT_TRUE(got.ok()) << number << ": " << got.status();
      if (number >= next) {
        ASSERT_EQ(AsText(got->bytes), MakeFrame(number, TokensOf(number)));
      }
    }
    // The stores under way are there whole or not at all.
    for (uint32_t number = most; number < most + 3; ++number) {
      const auto got = (*cache)->Get(MakeKey(number));
      if (got.ok()) {
        EXPECT_EQ(AsText(got->bytes), MakeFrame(number, TokensOf(number)));
      } else {
        EXPECT_EQ(CodeOf(got.status()), KVT_ERR_NOT_FOUND) << got.status();
      }
    }
    EXPECT_EQ((*cache)->stats().corrupt, 0u);
    torn += (*cache)->stats().torn;
    next = most + 3;
  }
  RecordProperty("kills", static_cast<int>(kills));
  RecordProperty("torn", static_cast<int>(torn));
}

// Fills a 2 MiB file system; returns what went wrong.
std::string FillDisk(const std::string& path) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return absl::StrCat("this test needs to mount a tmpfs; unshare: ", strerror(errno));
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", path.c_str(), "tmpfs", 0, "size=2m,mode=777") != 0) {
    return absl::StrCat("this test needs to mount a tmpfs; mount: ", strerror(errno));
  }
  auto cache = OpenAt(path + "/cache");
  if (!cache.ok()) return std::string(cache.status().message());
  uint32_t stored = 0;
  Status full;
  for (; full.ok(); ++stored) full = (*cache)->Put(MakeKey(stored), AsBytes(MakeFrame(stored, 2048)));
  --stored;
  if (CodeOf(full) != KVT_ERR_DISK_FULL || !absl::StrContains(full.message(), path))
    return absl::StrCat("wanted a full disk, got ", full.ToString());
  if (stored < 5) return absl::StrCat("only ", stored, " frames fit");
  // Smaller ones may still fit, the large one does not; all that was stored is intact, also after reopening.
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < stored; ++i) {
      const auto got = (*cache)->Get(MakeKey(i));
      if (!got.ok()) return absl::StrCat("frame ", i, ": ", got.status().ToString());
      if (AsText(got->bytes) != MakeFrame(i, 2048)) return absl::StrCat("frame ", i, " differs");
    }
    if (CodeOf((*cache)->Get(MakeKey(stored)).status()) != KVT_ERR_NOT_FOUND)
      return "the failed store is visible";
    if ((*cache)->stats().torn != 0) return "the failed store left a torn record";
    if (CodeOf((*cache)->Put(MakeKey(stored), AsBytes(MakeFrame(stored, 2048)))) != KVT_ERR_DISK_FULL)
      return "the disk is no longer full";
    cache->reset();
    cache = OpenAt(path + "/cache");
    if (!cache.ok()) return absl::StrCat("reopen: ", cache.status().ToString());
  }
  // Removing all gives the disk back.
  const auto removed = (*cache)->Remove(MakeKeys(0, stored));
  if (!removed.ok() || *removed != stored) return absl::StrCat("remove: ", removed.status().ToString());
  for (uint32_t i = 0; i < stored; ++i) {
    const Status put = (*cache)->Put(MakeKey(i), AsBytes(MakeFrame(i, 2048)));
    if (!put.ok()) return absl::StrCat("store ", i, " after the removal: ", put.ToString());
  }
  return "";
}

TEST(CacheFault, AFullDiskFailsTheStoreAndNothingElse) {
  TempDir dir;
  EXPECT_EQ(Child([&](int) { return FillDisk(dir.path()); }).Join(), "");
}

TEST(CacheFault, OneProcessAtATime) {
  TempDir dir;
  const std::string path = dir.path() + "/cache";
  {
    // The child holds the directory until it is killed.
    Child child([&](int out) -> std::string {
      const auto cache = OpenAt(path);
      const pid_t self = getpid();
      if (!cache.ok() || write(out, &self, sizeof self) != sizeof self) return "failed";
      pause();
      return "";
    });
    pid_t pid = 0;
    ASSERT_TRUE(child.Read(&pid, sizeof pid));
    EXPECT_EQ(OpenError(path, absl::StrCat(path, " is open in process ", pid)), KVT_ERR_LOCKED);
  }
  // Its death gives the directory free; so does the end of a cache, at once.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(OpenAt(path).ok());
  const auto held = OpenAt(path);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(OpenError(path, path), KVT_ERR_LOCKED);
}

TEST(CacheFault, NoPermissionNamesThePath) {
  TempDir dir;
  const std::string closed = dir.path() + "/closed", sealed = dir.path() + "/sealed";
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(mkdir(closed.c_str(), 0000), 0);
  ASSERT_EQ(mkdir(sealed.c_str(), 0555), 0);
  const std::string text =
      Child([&](int) -> std::string {
        // Root may do everything, so become someone else.
        if (geteuid() == 0 && setuid(65534) != 0) return absl::StrCat("setuid: ", strerror(errno));
        std::string wrong;
        for (const std::string& path : {closed, closed + "/below", sealed, sealed + "/below"}) {
          const Status status = OpenAt(path).status();
          if (CodeOf(status) != KVT_ERR_PERMISSION || !absl::StrContains(status.message(), path))
            absl::StrAppend(&wrong, path, ": ", status.ToString(), "\n");
        }
        return wrong;
      }).Join();
  EXPECT_EQ(text, "");
}

TEST(CacheFault, StrangePlacesAreRefusedWithTheReason) {
  TempDir dir;
  const std::string file = dir.path() + "/file", used = dir.path() + "/used";
  std::ofstream(file) << "not a directory";
  EXPECT_EQ(OpenError(file, file), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(OpenError(file + "/below", file), KVT_ERR_IO);
  EXPECT_EQ(OpenError(dir.path() + "/no/parent", "/no/parent"), KVT_ERR_NOT_FOUND);
  ASSERT_EQ(mkdir(used.c_str(), 0755), 0);
  std::ofstream(used + "/letter.txt") << "mine";
  EXPECT_EQ(OpenError(used, "letter.txt"), KVT_ERR_INVALID_ARGUMENT);
  // Nothing was left there.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(used), {}), 1);
  EXPECT_EQ(OpenError("", "file:"), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(OpenAt(dir.path() + "/small", "?capacity=1KiB").status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(OpenAt(dir.path() + "/odd", "?size=1GiB").status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(Cache::Open(MakeRuntime(), "redis://host").status()), KVT_ERR_UNSUPPORTED);
  EXPECT_EQ(CodeOf(Cache::Open(MakeRuntime(), "mem:/path").status()), KVT_ERR_INVALID_ARGUMENT);
  // Not "no limit".
  EXPECT_EQ(CodeOf(Cache::Open(MakeRuntime(), "mem:?capacity=0").status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(Cache::Open(MakeRuntime(), "mem:?capacity=0.1B").status()), KVT_ERR_INVALID_ARGUMENT);
}

TEST(CacheFault, AnotherFormatVersionIsRefused) {
  TempDir dir;
  const std::string path = dir.path() + "/cache", marker = path + "/kvartet-cache";
  ASSERT_TRUE(OpenAt(path).ok());
  std::string bytes(64, '\0');
  {
    std::ifstream in(marker, std::ios::binary);
    ASSERT_TRUE(in.read(bytes.data(), 64).good());
  }
  const auto write_marker = [&](const std::string& content) {
    std::ofstream(marker, std::ios::binary | std::ios::trunc) << content;
  };
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] ^= 0x01;
    write_marker(flipped);
    const bool version = at >= 8 && at < 12;
    EXPECT_EQ(OpenError(path, marker), version ? KVT_ERR_VERSION : KVT_ERR_CORRUPT) << at;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_marker(bytes.substr(0, size));
    EXPECT_EQ(OpenError(path, marker), KVT_ERR_CORRUPT) << size;
  }
  write_marker(bytes);
  EXPECT_TRUE(OpenAt(path).ok());
}

TEST(CacheFault, ADamagedOrderOfUseIsOnlyForgotten) {
  TempDir dir(true);
  const std::string path = dir.path() + "/cache", order = path + "/order";
  {
    const auto cache = OpenAt(path);
    for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE((*cache)->Put(MakeKey(i), AsBytes(MakeFrame(i))).ok());
  }
  const auto size = std::filesystem::file_size(order);
  EXPECT_EQ(size, 32u + 3 * 8);
  for (size_t at = 0; at < size; ++at) {
    std::fstream io(order, std::ios::binary | std::ios::in | std::ios::out);
    io.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(io.get() ^ 0x10);
    io.seekp(static_cast<std::streamoff>(at));
    io.put(byte);
    io.close();
    const auto cache = OpenAt(path);
    ASSERT_TRUE(cache.ok()) << cache.status();
    EXPECT_EQ(*(*cache)->Match(MakeKeys(0, 3)), 3u);
  }
}

// The log may call the cache, as runtime.h says: what it reports here happens in the middle of an append.
TEST(CacheFault, TheLogMayCallTheCache) {
  struct Sink {
    Cache* cache = nullptr;
    int lines = 0;
    static void Log(void* context, int32_t, const char*, size_t) {
      auto* sink = static_cast<Sink*>(context);
      ++sink->lines;
      if (sink->cache == nullptr) return;
      EXPECT_TRUE(sink->cache->Remove(MakeKeys(1000, 1)).ok());
    }
  } sink;
  kvt_runtime_options_t options = {};
  options.struct_size = sizeof options;
  options.threads = 1;
  options.log = Sink::Log;
  options.log_context = &sink;
  options.log_level = KVT_LOG_WARNING;
  TempDir dir;
  const std::string path = dir.path() + "/cache";
  auto cache = Cache::Open(*Runtime::Create(options), absl::StrCat("file:", path, "?capacity=1MiB"));
  ASSERT_TRUE(cache.ok()) << cache.status();
  sink.cache = cache->get();
  // In the way of the order of use, which is written when a segment is full.
  ASSERT_EQ(mkdir((path + "/new").c_str(), 0700), 0);
  for (uint32_t number = 0; sink.lines == 0 && number < 1000; ++number) {
    const Status put = (*cache)->Put(MakeKey(number), AsBytes(MakeFrame(number)));
    ASSERT_TRUE(put.ok()) << put;
  }
  EXPECT_EQ(sink.lines, 1);
  sink.cache = nullptr;
}

TEST(CacheFault, APutIntoADeletedDirectoryFailsAtOnce) {
  TempDir dir;
  const std::string path = dir.path() + "/cache";
  const auto cache = OpenAt(path);
  ASSERT_TRUE(cache.ok()) << cache.status();
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE((*cache)->Put(MakeKey(i), AsBytes(MakeFrame(i))).ok());
  std::filesystem::remove_all(path);
  for (uint32_t i = 2; i < 4; ++i) {
    const Status put = (*cache)->Put(MakeKey(i), AsBytes(MakeFrame(i)));
    EXPECT_EQ(CodeOf(put), KVT_ERR_IO) << put;
    EXPECT_TRUE(absl::StrContains(put.message(), path)) << put;
    EXPECT_EQ(*(*cache)->Match(MakeKeys(i, 1)), 0u);
  }
  // The same for an operation.
  const std::string frame = MakeFrame(4);
  const uint64_t length = frame.size();
  const auto keys = MakeKeys(4, 1);
  kvt_status_t result = 77;
  const auto operation =
      (*cache)->SubmitPut(keys, reinterpret_cast<const uint8_t*>(frame.data()), &length, &result, Soon());
  ASSERT_TRUE(operation.ok());
  const Status waited = (*cache)->Wait(*operation, Soon(), nullptr);
  EXPECT_EQ(CodeOf(waited), KVT_ERR_IO);
  EXPECT_TRUE(absl::StrContains(waited.message(), path)) << waited;
  EXPECT_EQ(result, KVT_ERR_IO);
  // What was stored before can be loaded as long as its file is open.
  for (uint32_t i = 0; i < 2; ++i) EXPECT_TRUE((*cache)->Get(MakeKey(i)).ok());
  EXPECT_EQ(CodeOf((*cache)->Remove(MakeKeys(0, 1)).status()), KVT_ERR_IO);
}

TEST(CacheFault, ADeletedOrReplacedSegmentFailsOnePut) {
  TempDir dir;
  const std::string path = dir.path() + "/cache", segment = path + "/0000000000000001.seg";
  for (const bool replaced : {false, true}) {
    std::filesystem::remove_all(path);
    auto cache = OpenAt(path);
    ASSERT_TRUE(cache.ok()) << cache.status();
    ASSERT_TRUE((*cache)->Put(MakeKey(0), AsBytes(MakeFrame(0))).ok());
    ASSERT_EQ(unlink(segment.c_str()), 0);
    if (replaced) std::ofstream(segment) << "";
    const Status put = (*cache)->Put(MakeKey(1), AsBytes(MakeFrame(1)));
    EXPECT_EQ(CodeOf(put), KVT_ERR_IO) << put;
    EXPECT_TRUE(absl::StrContains(put.message(), segment)) << put;
    const Status next = (*cache)->Put(MakeKey(2), AsBytes(MakeFrame(2)));
    EXPECT_TRUE(next.ok()) << next;
    cache->reset();
    cache = OpenAt(path);
    ASSERT_TRUE(cache.ok()) << cache.status();
    EXPECT_TRUE((*cache)->Get(MakeKey(2)).ok());
    EXPECT_EQ(*(*cache)->Match(MakeKeys(1, 1)), 0u);
  }
}

TEST(CacheFault, AForkedChildDoesNotGiveUpTheDirectory) {
  TempDir dir;
  const std::string path = dir.path() + "/cache";
  const auto directory = CacheDirectory::Open(path);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(Child([&](int) {
              (*directory)->Unlock();
              return std::string("done");
            }).ReadAll(),
            "done");
  EXPECT_EQ(OpenError(path, path), KVT_ERR_LOCKED);
  (*directory)->Unlock();
  EXPECT_TRUE(OpenAt(path).ok());
}

TEST(CacheFault, WhatIsNoFileOrFarTooLongIsNotReadAsOne) {
  TempDir dir;
  const std::string path = dir.path() + "/cache";
  ASSERT_TRUE((*OpenAt(path))->Put(MakeKey(0), AsBytes(MakeFrame(0))).ok());
  // A hint that would take all memory is none.
  const std::string order = path + "/order";
  ASSERT_EQ(truncate(order.c_str(), off_t{1} << 40), 0) << strerror(errno);
  {
    const auto cache = OpenAt(path);
    ASSERT_TRUE(cache.ok()) << cache.status();
    EXPECT_TRUE((*cache)->Get(MakeKey(0)).ok());
  }
  const std::string marker = path + "/kvartet-cache";
  ASSERT_EQ(unlink(marker.c_str()), 0);
  ASSERT_EQ(mkfifo(marker.c_str(), 0600), 0);
  EXPECT_EQ(OpenError(path, marker), KVT_ERR_CORRUPT);
}

}  // namespace
}  // namespace kvt
