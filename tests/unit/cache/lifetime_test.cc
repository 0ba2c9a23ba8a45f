// Whose memory is touched until when: cancel, destroy, eviction under readers, the runtime's budget.
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "cache/memory_tier.h"
#include "unit/cache/fixture.h"

namespace kvt {
namespace {

// Pages that give SIGSEGV once they are sealed.
class Pages {
 public:
  explicit Pages(size_t size) : size_(size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    data_ = static_cast<uint8_t*>(memory);
  }
  ~Pages() { munmap(data_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  uint8_t* data() { return data_; }
  void Seal() { EXPECT_EQ(mprotect(data_, size_, PROT_NONE), 0); }

 private:
  size_t size_;
  uint8_t* data_;
};

// All that a caller lends to an operation on `blocks` blocks.
struct Lent {
  explicit Lent(uint32_t blocks)
      : rows(kLayers * 2 * blocks * kBlockTokens * kRowBytes),
        keys(blocks * KVT_KEY_BYTES),
        results(blocks * sizeof(kvt_status_t)) {
    const auto made = MakeKeys(0, blocks);
    std::copy(made.begin(), made.end(), keys.data());
  }
  void Seal() {
    rows.Seal();
    keys.Seal();
    results.Seal();
  }
  Pages rows, keys, results;
};

class LifetimeTest : public testing::TestWithParam<std::string> {
 protected:
  static constexpr uint32_t kBlocks = 400;

  void Open(const std::string& options = "") {
    auto opened = Cache::Open(runtime_, TierUrl(GetParam(), dir_, options));
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *opened;
  }
  Cache::Blocks BlocksIn(uint8_t* rows) {
    std::vector<void*> bases;
    for (size_t part = 0; part < kLayers * 2; ++part)
      bases.push_back(rows + part * kBlocks * kBlockTokens * kRowBytes);
    kvt_view_t view = {};
    view.struct_size = sizeof view;
    view.memory = KVT_MEMORY_HOST;
    view.element = KVT_ELEMENT_F16;
    view.layer_end = kLayers;
    view.head_end = kHeads;
    view.bases = bases.data();
    view.base_count = bases.size();
    for (int stream = 0; stream < 2; ++stream) {
      view.token_stride[stream] = kRowBytes;
      view.head_stride[stream] = kHeadDim * 2;
      view.element_stride[stream] = 2;
    }
    view.tokens = kBlocks * kBlockTokens;
    FrameSpec spec;
    spec.layer_end = kLayers;
    return {MakeCodec(model_), *View::Check(*model_, &view), spec, kBlockTokens};
  }
  StatusOr<uint64_t> Submit(Lent* lent, bool store) {
    const auto keys = absl::MakeConstSpan(lent->keys.data(), kBlocks * KVT_KEY_BYTES);
    auto* results = reinterpret_cast<kvt_status_t*>(lent->results.data());
    Cache::Blocks blocks = BlocksIn(lent->rows.data());
    return store ? cache_->SubmitStore(std::move(blocks), keys, results, Soon())
                 : cache_->SubmitLoad(std::move(blocks), keys, results, Soon());
  }

  // Items that operations have worked on so far.
  uint64_t Done() const {
    const kvt_cache_stats_t stats = cache_->stats();
    return stats.puts + stats.hits + stats.misses;
  }

  TempDir dir_{true};
  std::shared_ptr<Runtime> runtime_ = MakeRuntime();
  std::shared_ptr<const Model> model_ = MakeModel();
  std::shared_ptr<Cache> cache_;
};

TEST_P(LifetimeTest, NothingIsTouchedAfterCancel) {
  Open();
  int cancelled = 0;
  for (int round = 0; round < 30; ++round) {
    Lent lent(kBlocks);
    const uint64_t before = Done();
    const auto operation = Submit(&lent, round % 3 == 0);
    ASSERT_TRUE(operation.ok()) << operation.status();
    // Let it come into its stride, to a different place each round.
    if (round % 2 == 1) {
      while (Done() < before + round * 11) std::this_thread::yield();
    }
    ASSERT_TRUE(cache_->Cancel(*operation).ok());
    const auto* results = reinterpret_cast<const kvt_status_t*>(lent.results.data());
    std::vector<kvt_status_t> seen(results, results + kBlocks);
    lent.Seal();
    kvt_completion_t done = {};
    const Status status = cache_->Wait(*operation, Soon(), &done);
    EXPECT_EQ(done.items, kBlocks);
    EXPECT_EQ(static_cast<uint64_t>(std::count(seen.begin(), seen.end(), KVT_OK)), done.items_ok);
    if (CodeOf(status) == KVT_ERR_CANCELLED) ++cancelled;
    for (const kvt_status_t result : seen) {
      EXPECT_TRUE(result == KVT_OK || result == KVT_ERR_CANCELLED || result == KVT_ERR_NOT_FOUND) << result;
    }
  }
  EXPECT_GT(cancelled, 0);
  EXPECT_EQ(CodeOf(cache_->Cancel(12345)), KVT_ERR_NOT_FOUND);
}

TEST_P(LifetimeTest, NothingIsTouchedAfterDestroy) {
  for (int round = 0; round < 15; ++round) {
    Open();
    std::vector<std::unique_ptr<Lent>> lent;
    for (int i = 0; i < 4; ++i) {
      lent.push_back(std::make_unique<Lent>(kBlocks));
      ASSERT_TRUE(Submit(lent.back().get(), i % 2 == 0).ok());
    }
    // As kvt_cache_destroy does.
    cache_->Shutdown();
    for (const auto& one : lent) one->Seal();
    // The directory is free at once, though this thread still holds the object.
    const auto held = std::move(cache_);
    Open();
    cache_.reset();
    EXPECT_EQ(CodeOf(held->Get(MakeKey(0)).status()), KVT_ERR_CLOSED);
  }
  EXPECT_EQ(runtime_->memory_used(), 0u);
}

// Threads put one frame after another in their own calls while the cache ends under them. What a put said is
// stored is there for the next owner of the directory, whole; later puts say that the cache is closed.
TEST_P(LifetimeTest, PutsDuringTheEndAreKeptOrRefused) {
  constexpr uint32_t kThreads = 3, kFrames = 200;
  std::vector<std::string> frames;
  for (uint32_t i = 0; i < kThreads * kFrames; ++i) frames.push_back(MakeFrame(i));
  for (uint32_t round = 0; round < 20; ++round) {
    Open();
    std::vector<uint32_t> stored(kThreads);
    std::atomic<uint32_t> puts{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, cache = cache_] {
        for (uint32_t i = 0; i < kFrames; ++i) {
          const Status put = cache->Put(MakeKey(t * kFrames + i), AsBytes(frames[t * kFrames + i]));
          puts.fetch_add(1);
          if (!put.ok()) {
            EXPECT_EQ(CodeOf(put), KVT_ERR_CLOSED) << put;
            return;
          }
          ++stored[t];
        }
      });
    }
    while (puts.load() < round * 10) std::this_thread::yield();
    if (round % 2 == 0) {
      cache_->Shutdown();
    } else {
      EXPECT_TRUE(cache_->Close(Soon()).ok());
      cache_->Shutdown();
    }
    Open();
    for (std::thread& thread : threads) thread.join();
    for (uint32_t t = 0; GetParam() == "file" && t < kThreads; ++t) {
      for (uint32_t i = 0; i < stored[t]; ++i) {
        const auto frame = cache_->Get(MakeKey(t * kFrames + i));
        ASSERT_TRUE(frame.ok()) << "round " << round << ", thread " << t << ", frame " << i << ": "
                                << frame.status();
        ASSERT_EQ(AsText(frame->bytes), frames[t * kFrames + i]);
      }
    }
    cache_.reset();
    if (GetParam() == "file") std::filesystem::remove_all(dir_.path() + "/cache");
  }
  EXPECT_EQ(runtime_->memory_used(), 0u);
}

TEST_P(LifetimeTest, ABudgetWithoutRoomGivesLimitAndNoMore) {
  Open();
  ASSERT_TRUE(cache_->Put(MakeKey(0), AsBytes(MakeFrame(0))).ok());
  cache_.reset();
  // Room for a few small frames, not for a large one.
  runtime_ = MakeRuntime(2, 16384);
  Open();
  for (uint32_t i = 0; i < 30; ++i) {
    const Status put = cache_->Put(MakeKey(i), AsBytes(MakeFrame(i)));
    EXPECT_TRUE(put.ok()) << i << ": " << put;
    EXPECT_LE(runtime_->memory_used(), 16384u);
  }
  EXPECT_TRUE(cache_->Get(MakeKey(29)).ok());
  if (GetParam() == "mem") {
    const Status large = cache_->Put(MakeKey(50), AsBytes(MakeFrame(50, 1024)));
    EXPECT_EQ(CodeOf(large), KVT_ERR_LIMIT) << large;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, LifetimeTest, testing::Values("mem", "file"),
                         [](const auto& param_info) { return param_info.param; });

class MemoryTierTest : public testing::Test {
 protected:
  void Put(MemoryTier* tier, uint32_t number) {
    const std::string frame = MakeFrame(number);
    auto put = tier->Stage(MakeKey(number), FrameRef{AsBytes(frame), nullptr});
    ASSERT_TRUE(put.ok()) << put.status();
    ASSERT_TRUE(tier->Commit(*std::move(put)).ok());
  }
  const std::shared_ptr<Runtime> runtime_ = MakeRuntime();
  FrameScratch scratch_{runtime_};
};

TEST_F(MemoryTierTest, LeastRecentlyUsedGoesFirst) {
  const uint64_t held = (*FrameBuffer::Allocate(runtime_, MakeFrame(0).size()))->capacity();
  MemoryTier tier(runtime_, 3 * held);
  for (uint32_t i = 0; i < 3; ++i) Put(&tier, i);
  EXPECT_TRUE(tier.Get(MakeKey(0), &scratch_).ok());
  Put(&tier, 3);
  EXPECT_TRUE(tier.Contains(MakeKey(0)));
  EXPECT_FALSE(tier.Contains(MakeKey(1)));
  Put(&tier, 4);
  EXPECT_FALSE(tier.Contains(MakeKey(2)));
  EXPECT_EQ(tier.stats().evictions, 2u);
  EXPECT_EQ(tier.stats().frames, 3u);
  EXPECT_EQ(runtime_->memory_used(), 3 * held);
}

TEST_F(MemoryTierTest, EvictionAndRemovalLeaveReadersTheirMemory) {
  MemoryTier tier(runtime_, 0);
  Put(&tier, 0);
  Put(&tier, 1);
  FrameRef evicted = *tier.Get(MakeKey(0), &scratch_), removed = *tier.Get(MakeKey(1), &scratch_);
  const Key key = MakeKey(1);
  EXPECT_EQ(*tier.Remove(absl::MakeConstSpan(&key, 1)), 1u);
  EXPECT_GT(tier.Shed(1), 0u);
  EXPECT_EQ(tier.stats().frames, 0u);
  EXPECT_EQ(tier.stats().bytes, 0u);
  EXPECT_EQ(AsText(evicted.bytes), MakeFrame(0));
  EXPECT_EQ(AsText(removed.bytes), MakeFrame(1));
  EXPECT_GT(runtime_->memory_used(), 0u);
  evicted = removed = FrameRef();
  EXPECT_EQ(runtime_->memory_used(), 0u);
}

TEST_F(MemoryTierTest, FramesAreAlignedAndTight) {
  MemoryTier tier(runtime_, 0);
  const std::string frame = MakeFrame(0);
  auto roomy = *FrameBuffer::Allocate(runtime_, 4 * frame.size());
  std::copy(frame.begin(), frame.end(), roomy->data());
  ASSERT_TRUE(tier.Commit(*tier.Stage(MakeKey(0), FrameRef{Bytes(roomy->data(), frame.size()), roomy})).ok());
  roomy.reset();
  const FrameRef kept = *tier.Get(MakeKey(0), &scratch_);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(kept.bytes.data()) % 64, 0u);
  EXPECT_LT(kept.owner->capacity(), frame.size() + 64);
  EXPECT_EQ(AsText(kept.bytes), frame);
}

}  // namespace
}  // namespace kvt
