// Compaction while other threads put, evict and remove.
#include <random>
#include <thread>

#include "unit/cache/fixture.h"

namespace kvt {
namespace {

constexpr uint32_t kThreads = 3, kNumbers = 60, kTokens = 128;

// Every thread has numbers of its own, which it puts and removes in turn, and others that only make traffic.
void Churn(Cache* cache, uint32_t thread, std::vector<bool>* there) {
  std::mt19937 random(thread);
  uint32_t next = 10'000 * (thread + 1);
  for (int step = 0; step < 150; ++step) {
    const uint32_t number = random() % kNumbers;
    const uint32_t key = thread * kNumbers + number;
    if ((*there)[number]) {
      const auto removed = cache->Remove(MakeKeys(key, 1));
      ASSERT_TRUE(removed.ok()) << removed.status();
    } else {
      const Status put = cache->Put(MakeKey(key), AsBytes(MakeFrame(key, kTokens)));
      ASSERT_TRUE(put.ok()) << put;
    }
    (*there)[number] = !(*there)[number];
    // Used ones stay, so that segments die in patches and have to be compacted.
    for (uint32_t hot = 0; hot < kNumbers / 4; ++hot) (void)cache->Get(MakeKey(thread * kNumbers + hot));
    for (int more = 0; more < 2; ++more) {
      const Status put = cache->Put(MakeKey(next), AsBytes(MakeFrame(next, kTokens)));
      ASSERT_TRUE(put.ok()) << put;
      ++next;
    }
  }
}

TEST(Compaction, LosesNothingAndBringsNothingBackUnderManyThreads) {
  for (int round = 0; round < 2; ++round) {
    // A real disk: the flushes are what lets the threads meet.
    TempDir dir;
    const std::string url = absl::StrCat("file:", dir.path(), "/cache?capacity=1MiB");
    std::vector<std::vector<bool>> there(kThreads, std::vector<bool>(kNumbers));
    std::vector<bool> visible(kThreads * kNumbers);
    {
      auto cache = Cache::Open(MakeRuntime(), url);
      ASSERT_TRUE(cache.ok()) << cache.status();
      std::vector<std::thread> threads;
      for (uint32_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] { Churn(cache->get(), i, &there[i]); });
      for (std::thread& thread : threads) thread.join();
      for (uint32_t i = 0; i < visible.size(); ++i) visible[i] = *(*cache)->Match(MakeKeys(i, 1)) == 1;
    }
    auto cache = Cache::Open(MakeRuntime(), url);
    ASSERT_TRUE(cache.ok()) << cache.status();
    for (uint32_t i = 0; i < visible.size(); ++i) {
      const auto got = (*cache)->Get(MakeKey(i));
      if (visible[i]) {
        EXPECT_TRUE(got.ok()) << i << " was visible when the cache was closed: " << got.status();
      }
      if (!there[i / kNumbers][i % kNumbers]) {
        EXPECT_FALSE(got.ok()) << i << " was removed and came back";
      }
      if (got.ok()) {
        EXPECT_EQ(AsText(got->bytes), MakeFrame(i, kTokens));
      }
    }
    EXPECT_EQ((*cache)->stats().torn, 0u);
  }
}

}  // namespace
}  // namespace kvt
