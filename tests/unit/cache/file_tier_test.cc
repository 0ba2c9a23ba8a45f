// The file tier over restarts: what is found again, damage, removals, capacity, eviction order, compaction.
#include "cache/file_tier.h"

#include <fcntl.h>

#include <fstream>

#include "unit/cache/fixture.h"

namespace kvt {
namespace {

namespace fs = std::filesystem;

class FileTierTest : public testing::Test {
 protected:
  void Open(const std::string& options = "") {
    cache_.reset();
    auto opened = Cache::Open(runtime_, TierUrl("file", dir_, options));
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *opened;
  }
  void Put(uint32_t number, uint32_t tokens = kBlockTokens) {
    const Status put = cache_->Put(MakeKey(number), AsBytes(MakeFrame(number, tokens)));
    ASSERT_TRUE(put.ok()) << put;
  }
  bool Has(uint32_t number, uint32_t tokens = kBlockTokens) {
    const auto got = cache_->Get(MakeKey(number));
    if (!got.ok()) {
      EXPECT_EQ(CodeOf(got.status()), KVT_ERR_NOT_FOUND) << got.status();
      return false;
    }
    EXPECT_EQ(AsText(got->bytes), MakeFrame(number, tokens));
    return true;
  }
  std::vector<fs::path> Segments() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(dir_.path() + "/cache")) {
      if (entry.path().extension() == ".seg") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  uint64_t SegmentBytes() const {
    uint64_t bytes = 0;
    for (const auto& path : Segments()) bytes += fs::file_size(path);
    return bytes;
  }
  static std::string ReadFile(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  static void WriteFile(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Offset of the record of a frame in the only segment.
  size_t RecordOf(uint32_t number) const {
    const std::string bytes = ReadFile(Segments().front());
    const size_t frame = bytes.find(MakeFrame(number));
    EXPECT_NE(frame, std::string::npos);
    return frame - kRecordHeaderBytes;
  }
  void Flip(const fs::path& path, size_t offset) {
    std::string bytes = ReadFile(path);
    bytes[offset] ^= 0x04;
    WriteFile(path, bytes);
  }

  TempDir dir_{true};
  std::shared_ptr<Runtime> runtime_ = MakeRuntime();
  std::shared_ptr<Cache> cache_;
};

TEST_F(FileTierTest, FramesAreThereAfterARestart) {
  Open();
  for (uint32_t i = 0; i < 20; ++i) Put(i);
  const uint64_t bytes = cache_->stats().bytes;
  Open();
  for (uint32_t i = 0; i < 20; ++i) EXPECT_TRUE(Has(i));
  EXPECT_EQ(cache_->stats().bytes, bytes);
  EXPECT_EQ(cache_->stats().torn, 0u);
  // And it goes on where it was.
  Put(20);
  Open();
  EXPECT_EQ(*cache_->Match(MakeKeys(0, 30)), 21u);
}

TEST_F(FileTierTest, RemovedFramesStayRemoved) {
  Open();
  for (uint32_t i = 0; i < 5; ++i) Put(i);
  ASSERT_EQ(*cache_->Remove(MakeKeys(1, 2)), 2u);
  Put(2);
  Open();
  EXPECT_TRUE(Has(0));
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2));
  ASSERT_EQ(*cache_->Remove(MakeKeys(0, 5)), 4u);
  Open();
  EXPECT_EQ(cache_->stats().frames, 0u);
}

TEST_F(FileTierTest, AFlippedBitCostsItsBlockOnly) {
  Open();
  constexpr uint32_t kCount = 6;
  Rows rows(kCount * kBlockTokens, 7), loaded(kCount * kBlockTokens);
  const auto model = MakeModel();
  const auto codec = MakeCodec(model);
  FrameSpec spec;
  spec.layer_end = kLayers;
  const auto keys = MakeKeys(0, kCount);
  std::vector<kvt_status_t> results(kCount, -1);
  auto operation =
      cache_->SubmitStore({codec, rows.MakeView(*model), spec, kBlockTokens}, keys, results.data(), Soon());
  ASSERT_TRUE(cache_->Wait(*operation, Soon(), nullptr).ok());
  cache_.reset();
  const fs::path path = Segments().front();
  const std::string segment = ReadFile(path);
  // Where each frame is, by its key in the record header.
  for (uint32_t hit = 0; hit < kCount; ++hit) {
    const Key key = MakeKey(hit);
    const size_t record = segment.find(std::string(AsText(Bytes(key.bytes)))) - 24;
    Open();
    // Damaged while it is open, so that loading has to find it.
    Flip(path, record + kRecordHeaderBytes + 500);
    results.assign(kCount, -1);
    operation = cache_->SubmitLoad({codec, loaded.MakeView(*model), spec, kBlockTokens}, keys, results.data(),
                                   Soon());
    kvt_completion_t done = {};
    const Status status = cache_->Wait(*operation, Soon(), &done);
    EXPECT_EQ(CodeOf(status), KVT_ERR_CORRUPT) << status;
    EXPECT_EQ(done.items_ok, kCount - 1);
    for (uint32_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(results[i], i == hit ? KVT_ERR_CORRUPT : KVT_OK);
      if (i != hit) {
        EXPECT_EQ(loaded.Block(i), rows.Block(i));
      }
    }
    EXPECT_EQ(cache_->stats().corrupt, 1u);
    EXPECT_EQ(cache_->stats().frames, kCount - 1);
    // It is dropped for good.
    Open();
    EXPECT_EQ(cache_->stats().frames, kCount - 1);
    cache_.reset();
    WriteFile(path, segment);
  }
}

TEST_F(FileTierTest, AFlippedByteAnywhereIsFound) {
  Open();
  for (uint32_t i = 0; i < 3; ++i) Put(i);
  cache_.reset();
  const fs::path path = Segments().front();
  const std::string segment = ReadFile(path);
  const size_t begin = RecordOf(1), end = RecordOf(2);
  const size_t padding = begin + kRecordHeaderBytes + MakeFrame(1).size();
  for (size_t offset = begin; offset < end; offset += 7) {
    Flip(path, offset);
    Open();
    EXPECT_TRUE(Has(0));
    EXPECT_TRUE(Has(2));
    // Bytes between records belong to nothing.
    EXPECT_EQ(Has(1), offset >= padding) << offset;
    EXPECT_EQ(cache_->stats().torn, offset >= padding ? 0u : 1u) << offset;
    cache_.reset();
    WriteFile(path, segment);
  }
}

TEST_F(FileTierTest, ATornTailIsCutOffAtAnyLength) {
  Open();
  for (uint32_t i = 0; i < 3; ++i) Put(i);
  cache_.reset();
  const fs::path path = Segments().front();
  const std::string segment = ReadFile(path);
  const size_t last = RecordOf(2);
  for (size_t size = last; size < segment.size(); size += size - last < 300 ? 1 : 61) {
    WriteFile(path, segment.substr(0, size));
    Open();
    EXPECT_TRUE(Has(0));
    EXPECT_TRUE(Has(1));
    EXPECT_FALSE(Has(2)) << size;
    EXPECT_EQ(cache_->stats().torn, size == last ? 0u : 1u) << size;
    EXPECT_EQ(fs::file_size(path), last);
    Put(2);
    EXPECT_TRUE(Has(2));
    cache_.reset();
  }
  // Lost blocks in the middle of the tail: zeros instead of data, the end is there.
  std::string holed = segment;
  holed.replace(last + 256, 512, 512, '\0');
  WriteFile(path, holed);
  Open();
  EXPECT_FALSE(Has(2));
  EXPECT_EQ(cache_->stats().torn, 1u);
}

TEST_F(FileTierTest, BytesInsideAFrameDoNotPassForARecord) {
  Open();
  Put(0);
  Put(1);
  cache_.reset();
  // A record of another directory: whole, but with another salt.
  const std::string foreign = ReadFile(Segments().front());
  TempDir other;
  auto opened = Cache::Open(runtime_, TierUrl("file", other));
  ASSERT_TRUE(opened.ok());
  opened->reset();
  WriteFile(other.path() + "/cache/0000000000000001.seg", foreign);
  opened = Cache::Open(runtime_, TierUrl("file", other));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->stats().frames, 0u);
  EXPECT_EQ((*opened)->stats().torn, 1u);
}

TEST_F(FileTierTest, LeastRecentlyUsedGoesFirst) {
  Open("?capacity=1MiB");
  constexpr uint32_t kTokens = 1024;  // about 128 KiB a frame
  const uint64_t record = RecordBytes(MakeFrame(0, kTokens).size());
  const auto fit = static_cast<uint32_t>((uint64_t{1} << 20) / record);
  for (uint32_t i = 0; i < fit; ++i) Put(i, kTokens);
  EXPECT_EQ(cache_->stats().evictions, 0u);
  EXPECT_TRUE(Has(0, kTokens));
  Put(fit, kTokens);
  EXPECT_EQ(cache_->stats().evictions, 1u);
  EXPECT_TRUE(Has(0, kTokens));
  EXPECT_FALSE(Has(1, kTokens));
  for (uint32_t i = 2; i <= fit; ++i) EXPECT_TRUE(Has(i, kTokens));
  const Status huge = cache_->Put(MakeKey(99), AsBytes(MakeFrame(99, 16384)));
  EXPECT_EQ(CodeOf(huge), KVT_ERR_LIMIT) << huge;
}

TEST_F(FileTierTest, TheDiskStaysWithinCapacityAndSlack) {
  constexpr uint64_t kCapacity = uint64_t{1} << 20;
  auto tier = FileTier::Open(runtime_, dir_.path() + "/cache", kCapacity);
  ASSERT_TRUE(tier.ok()) << tier.status();
  uint32_t state = 5;
  uint64_t most = 0;
  FrameScratch scratch(runtime_);
  // A few frames stay hot, so that segments die in patches and have to be compacted.
  for (uint32_t i = 0; i < 600; ++i) {
    state = state * 1664525u + 1013904223u;
    const uint32_t tokens = kBlockTokens * (1 + (state >> 28));
    const std::string frame = MakeFrame(i, tokens);
    auto put = (*tier)->Stage(MakeKey(i), FrameRef{AsBytes(frame), nullptr});
    ASSERT_TRUE(put.ok()) << put.status();
    ASSERT_TRUE((*tier)->Commit(*std::move(put)).ok());
    for (uint32_t hot = 0; hot < 20; ++hot) {
      if (i > 20) {
        EXPECT_TRUE((*tier)->Get(MakeKey(hot), &scratch).ok()) << hot << " after " << i;
      }
    }
    most = std::max(most, SegmentBytes());
    EXPECT_EQ(SegmentBytes(), (*tier)->physical_bytes());
    EXPECT_LE((*tier)->stats().bytes, kCapacity);
  }
  EXPECT_GT((*tier)->stats().evictions, 100u);
  EXPECT_LE(most, kCapacity + (*tier)->slack_bytes());
  const uint64_t frames = (*tier)->stats().frames;
  tier->reset();
  tier = FileTier::Open(runtime_, dir_.path() + "/cache", kCapacity);
  ASSERT_TRUE(tier.ok()) << tier.status();
  EXPECT_GE((*tier)->stats().frames, frames);
  EXPECT_EQ((*tier)->stats().torn, 0u);
  for (uint32_t hot = 0; hot < 20; ++hot) EXPECT_TRUE((*tier)->Contains(MakeKey(hot)));
  EXPECT_LE((*tier)->stats().bytes, kCapacity);
}

TEST_F(FileTierTest, RemovalsOutliveCompaction) {
  Open("?capacity=1MiB");
  for (uint32_t i = 0; i < 40; ++i) Put(i, 256);
  // Removed and put again in turn, with other traffic that makes segments die and be compacted.
  std::vector<bool> there(40, true);
  uint32_t state = 3, next = 1000;
  for (int step = 0; step < 400; ++step) {
    state = state * 1664525u + 1013904223u;
    const uint32_t number = (state >> 20) % 40;
    if (there[number]) {
      ASSERT_TRUE(cache_->Remove(MakeKeys(number, 1)).ok());
    } else {
      Put(number, 256);
    }
    there[number] = !there[number];
    if (step % 3 == 0) Put(next++, 256);
    if (step % 50 != 49) continue;
    Open("?capacity=1MiB");
    for (uint32_t i = 0; i < 40; ++i) {
      // Eviction may have taken a frame that is there; a removed one never comes back.
      const bool has = Has(i, 256);
      if (!there[i]) {
        EXPECT_FALSE(has) << i << " at step " << step;
      }
    }
  }
}

TEST_F(FileTierTest, ManySmallRemovalsAreCollectedWithoutACapacity) {
  Open();
  for (uint32_t i = 0; i < 10; ++i) Put(i);
  std::vector<uint8_t> keys = MakeKeys(0, 10);
  for (int round = 0; round < 30; ++round) {
    ASSERT_EQ(*cache_->Remove(keys), 10u);
    for (uint32_t i = 0; i < 10; ++i) Put(i);
  }
  Open();
  EXPECT_EQ(cache_->stats().frames, 10u);
}

TEST_F(FileTierTest, ReopeningWithASmallerCapacityEvictsTheOldest) {
  Open();
  for (uint32_t i = 0; i < 20; ++i) Put(i, 1024);
  Open("?capacity=1MiB");
  EXPECT_FALSE(Has(0, 1024));
  EXPECT_TRUE(Has(19, 1024));
  EXPECT_LE(cache_->stats().bytes, uint64_t{1} << 20);
}

}  // namespace
}  // namespace kvt
