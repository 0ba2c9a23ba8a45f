// What every tier has to do: put, store, load, match, get, remove, completions, cancel, deadlines.
#include <poll.h>

#include <thread>

#include "unit/cache/fixture.h"

namespace kvt {
namespace {

class CacheTest : public testing::TestWithParam<std::string> {
 protected:
  void Open(const std::string& options = "") {
    cache_.reset();
    auto opened = Cache::Open(runtime_, TierUrl(GetParam(), dir_, options));
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *opened;
  }
  Cache::Blocks BlocksOf(Rows* rows, uint64_t first_position = 0, absl::string_view codec = "raw") {
    const auto made = MakeCodec(model_, codec);
    FrameSpec spec;
    spec.layer_end = kLayers;
    return Cache::Blocks{made, rows->MakeView(*model_, first_position), spec, kBlockTokens};
  }
  kvt_completion_t WaitFor(const StatusOr<uint64_t>& operation, kvt_status_t expected = KVT_OK) {
    EXPECT_TRUE(operation.ok()) << operation.status();
    kvt_completion_t completion = {};
    const Status status = cache_->Wait(operation.value_or(0), Soon(), &completion);
    EXPECT_EQ(CodeOf(status), expected) << status;
    EXPECT_EQ(completion.kind, uint32_t{KVT_COMPLETION_DONE});
    return completion;
  }
  // Stores `count` blocks of `rows` under keys from `first` on.
  void Store(Rows* rows, uint32_t first, uint32_t count) {
    const auto keys = MakeKeys(first, count);
    std::vector<kvt_status_t> results(count, -1);
    WaitFor(cache_->SubmitStore(BlocksOf(rows), keys, results.data(), Soon()));
    for (const kvt_status_t result : results) EXPECT_EQ(result, KVT_OK);
  }

  TempDir dir_;
  std::shared_ptr<Runtime> runtime_ = MakeRuntime();
  std::shared_ptr<const Model> model_ = MakeModel();
  std::shared_ptr<Cache> cache_;
};

TEST_P(CacheTest, StoresAndLoadsBlocksBitExactly) {
  Open();
  constexpr uint32_t kCount = 100;
  Rows rows(kCount * kBlockTokens, 7);
  const auto keys = MakeKeys(0, kCount);
  std::vector<kvt_status_t> results(kCount, -1);
  const kvt_completion_t stored = WaitFor(cache_->SubmitStore(BlocksOf(&rows), keys, results.data(), Soon()));
  EXPECT_EQ(stored.items, kCount);
  EXPECT_EQ(stored.items_ok, kCount);
  EXPECT_EQ(stored.bytes, cache_->stats().bytes);

  Rows loaded(kCount * kBlockTokens);
  results.assign(kCount, -1);
  const kvt_completion_t done = WaitFor(cache_->SubmitLoad(BlocksOf(&loaded), keys, results.data(), Soon()));
  EXPECT_EQ(done.items_ok, kCount);
  EXPECT_EQ(done.bytes, stored.bytes);
  EXPECT_EQ(loaded.data, rows.data);
  const kvt_cache_stats_t stats = cache_->stats();
  EXPECT_EQ(stats.frames, kCount);
  EXPECT_EQ(stats.puts, kCount);
  EXPECT_EQ(stats.hits, kCount);
  EXPECT_EQ(stats.misses, 0u);
  EXPECT_GE(stats.checksums, kCount);
}

TEST_P(CacheTest, LoadReportsEachBlock) {
  Open();
  Rows rows(4 * kBlockTokens, 7);
  Store(&rows, 0, 4);
  ASSERT_EQ(*cache_->Remove(MakeKeys(2, 1)), 1u);
  Rows loaded(4 * kBlockTokens);
  std::vector<kvt_status_t> results(4, -1);
  const kvt_completion_t done = WaitFor(
      cache_->SubmitLoad(BlocksOf(&loaded), MakeKeys(0, 4), results.data(), Soon()), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(done.status, KVT_ERR_NOT_FOUND);
  EXPECT_EQ(done.items_ok, 3u);
  EXPECT_EQ(results, (std::vector<kvt_status_t>{KVT_OK, KVT_OK, KVT_ERR_NOT_FOUND, KVT_OK}));
  EXPECT_EQ(loaded.Block(3), rows.Block(3));
  EXPECT_EQ(loaded.Block(2), Rows(4 * kBlockTokens).Block(2));
  EXPECT_EQ(cache_->stats().misses, 1u);
}

TEST_P(CacheTest, LoadRefusesAnotherPositionModelAndNamespace) {
  Open();
  Rows rows(kBlockTokens, 7), loaded(kBlockTokens);
  Store(&rows, 0, 1);
  const auto keys = MakeKeys(0, 1);
  kvt_status_t result = -1;
  WaitFor(cache_->SubmitLoad(BlocksOf(&loaded, 16), keys, &result, Soon()), KVT_ERR_MISMATCH);
  EXPECT_EQ(result, KVT_ERR_MISMATCH);
  Cache::Blocks other_namespace = BlocksOf(&loaded);
  other_namespace.spec.namespace_digest[3] = 1;
  WaitFor(cache_->SubmitLoad(other_namespace, keys, &result, Soon()), KVT_ERR_MISMATCH);
  EXPECT_EQ(result, KVT_ERR_MISMATCH);
  Cache::Blocks other_model = BlocksOf(&loaded);
  other_model.codec = MakeCodec(MakeModel("model-b"));
  WaitFor(cache_->SubmitLoad(other_model, keys, &result, Soon()), KVT_ERR_MISMATCH);
  EXPECT_EQ(result, KVT_ERR_MISMATCH);
  // A mismatch is the caller's: the frame stays.
  EXPECT_EQ(cache_->stats().corrupt, 0u);
  WaitFor(cache_->SubmitLoad(BlocksOf(&loaded), keys, &result, Soon()));
  EXPECT_EQ(loaded.data, rows.data);
}

TEST_P(CacheTest, PutTakesWholeFramesOfTheirKeyOnly) {
  Open();
  const std::string good = MakeFrame(0), other = MakeFrame(1);
  std::string flipped = MakeFrame(2);
  flipped[flipped.size() - 3] ^= 0x10;
  const std::string truncated = MakeFrame(3).substr(0, 200);
  const std::string all = good + other + flipped + truncated;
  const std::vector<uint64_t> lengths = {good.size(), other.size(), flipped.size(), truncated.size()};
  std::vector<uint8_t> keys = MakeKeys(0, 4);
  const Key wrong = MakeKey(9);
  std::copy(wrong.bytes.begin(), wrong.bytes.end(), keys.begin() + KVT_KEY_BYTES);
  std::vector<kvt_status_t> results(4, -1);
  const kvt_completion_t done = WaitFor(cache_->SubmitPut(keys, reinterpret_cast<const uint8_t*>(all.data()),
                                                          lengths.data(), results.data(), Soon()),
                                        KVT_ERR_MISMATCH);
  EXPECT_EQ(results, (std::vector<kvt_status_t>{KVT_OK, KVT_ERR_MISMATCH, KVT_ERR_CORRUPT, KVT_ERR_CORRUPT}));
  EXPECT_EQ(done.items_ok, 1u);
  EXPECT_EQ(done.bytes, good.size());
  EXPECT_EQ(cache_->stats().frames, 1u);
  const auto got = cache_->Get(MakeKey(0));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(AsText(got->bytes), good);
}

TEST_P(CacheTest, AFrameOfTheSameFormStaysAndAnotherReplacesIt) {
  Open();
  const std::string first = MakeFrame(0), longer = MakeFrame(0, 2 * kBlockTokens);
  ASSERT_TRUE(cache_->Put(MakeKey(0), AsBytes(first)).ok());
  ASSERT_TRUE(cache_->Put(MakeKey(1), AsBytes(MakeFrame(1))).ok());
  const uint64_t bytes = cache_->stats().bytes;
  EXPECT_TRUE(cache_->Put(MakeKey(0), AsBytes(first)).ok());
  EXPECT_EQ(cache_->stats().bytes, bytes);
  // What was reported is what a get finds.
  EXPECT_TRUE(cache_->Put(MakeKey(0), AsBytes(longer)).ok());
  EXPECT_EQ(AsText(cache_->Get(MakeKey(0))->bytes), longer);
  EXPECT_EQ(cache_->stats().frames, 2u);
  EXPECT_EQ(cache_->stats().bytes, bytes - first.size() + longer.size());
  EXPECT_EQ(cache_->stats().evictions, 0u);
  if (GetParam() == "mem") return;
  Open();
  EXPECT_EQ(AsText(cache_->Get(MakeKey(0))->bytes), longer);
  EXPECT_EQ(*cache_->Remove(MakeKeys(0, 1)), 1u);
  Open();
  EXPECT_EQ(CodeOf(cache_->Get(MakeKey(0)).status()), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(cache_->stats().frames, 1u);
}

TEST_P(CacheTest, AStoreThatWasReportedIsWhatALoadFinds) {
  Open();
  Rows rows(kBlockTokens, 7), loaded(kBlockTokens);
  const auto keys = MakeKeys(0, 1);
  kvt_status_t result = -1;
  const auto store = [&](const Cache::Blocks& blocks) {
    return WaitFor(cache_->SubmitStore(blocks, keys, &result, Soon())).bytes != 0;
  };
  const auto part = [&](Rows* of, uint32_t begin, uint32_t end) {
    Cache::Blocks blocks = BlocksOf(of);
    blocks.spec.layer_begin = begin;
    blocks.spec.layer_end = end;
    return blocks;
  };
  EXPECT_TRUE(store(part(&rows, 0, 1)));
  EXPECT_FALSE(store(part(&rows, 0, 1)));
  EXPECT_TRUE(store(part(&rows, 1, 2)));
  WaitFor(cache_->SubmitLoad(part(&loaded, 1, 2), keys, &result, Soon()));
  WaitFor(cache_->SubmitLoad(part(&loaded, 0, 1), keys, &result, Soon()), KVT_ERR_MISMATCH);
  // All layers replace some; some are in all.
  EXPECT_TRUE(store(BlocksOf(&rows)));
  EXPECT_FALSE(store(part(&rows, 0, 1)));
  WaitFor(cache_->SubmitLoad(BlocksOf(&loaded), keys, &result, Soon()));
  EXPECT_EQ(loaded.data, rows.data);
  // Another codec is another form; other exempt tokens are not.
  Cache::Blocks lossy = BlocksOf(&rows, 0, "int8");
  EXPECT_TRUE(store(lossy));
  lossy.spec.exempt_first = 4;
  EXPECT_FALSE(store(lossy));
  Cache::Blocks elsewhere = BlocksOf(&rows, 32);
  EXPECT_TRUE(store(elsewhere));
  WaitFor(cache_->SubmitLoad(BlocksOf(&loaded, 32), keys, &result, Soon()));
  EXPECT_EQ(cache_->stats().frames, 1u);
}

TEST_P(CacheTest, AFrameThatNeverFitsTheBudgetEvictsNothing) {
  runtime_ = MakeRuntime(2, 64 << 10);
  Open();
  for (uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(cache_->Put(MakeKey(i), AsBytes(MakeFrame(i))).ok());
  constexpr uint32_t kMany = 1024;
  Rows rows(kMany, 7);
  Cache::Blocks blocks = BlocksOf(&rows);
  blocks.block_tokens = kMany;
  kvt_status_t result = -1;
  WaitFor(cache_->SubmitStore(blocks, MakeKeys(20, 1), &result, Soon()), KVT_ERR_LIMIT);
  EXPECT_EQ(result, KVT_ERR_LIMIT);
  EXPECT_EQ(cache_->stats().frames, 10u);
  EXPECT_EQ(cache_->stats().evictions, 0u);
}

TEST_P(CacheTest, MatchFindsTheLongestPrefix) {
  Open();
  for (uint32_t i : {0, 1, 2, 4}) ASSERT_TRUE(cache_->Put(MakeKey(i), AsBytes(MakeFrame(i))).ok());
  EXPECT_EQ(*cache_->Match(MakeKeys(0, 6)), 3u);
  EXPECT_EQ(*cache_->Match(MakeKeys(4, 1)), 1u);
  EXPECT_EQ(*cache_->Match(MakeKeys(5, 3)), 0u);
  EXPECT_EQ(*cache_->Match({}), 0u);
}

TEST_P(CacheTest, RemovedFramesAreGone) {
  Open();
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(cache_->Put(MakeKey(i), AsBytes(MakeFrame(i))).ok());
  EXPECT_EQ(*cache_->Remove(MakeKeys(1, 7)), 3u);
  EXPECT_EQ(CodeOf(cache_->Get(MakeKey(1)).status()), KVT_ERR_NOT_FOUND);
  EXPECT_TRUE(cache_->Get(MakeKey(0)).ok());
  EXPECT_EQ(cache_->stats().removals, 3u);
  EXPECT_EQ(cache_->stats().bytes, MakeFrame(0).size());
  ASSERT_TRUE(cache_->Put(MakeKey(1), AsBytes(MakeFrame(1))).ok());
  EXPECT_EQ(AsText(cache_->Get(MakeKey(1))->bytes), MakeFrame(1));
}

TEST_P(CacheTest, ExemptTokensCountFromTheEndsOfTheRun) {
  Open();
  Rows rows(4 * kBlockTokens, 7), loaded(4 * kBlockTokens);
  Cache::Blocks blocks = BlocksOf(&rows);
  blocks.spec.exempt_first = 20;
  blocks.spec.exempt_last = 16;
  const auto share = [&](size_t block) {
    const FrameSpec spec = blocks.SpecOf(block, 4, MakeKey(0));
    EXPECT_EQ(spec.token_begin, block * kBlockTokens);
    EXPECT_EQ(spec.token_count, kBlockTokens);
    return std::make_pair(spec.exempt_first, spec.exempt_last);
  };
  EXPECT_EQ(share(0), std::make_pair(16u, 0u));
  EXPECT_EQ(share(1), std::make_pair(4u, 0u));
  EXPECT_EQ(share(2), std::make_pair(0u, 0u));
  EXPECT_EQ(share(3), std::make_pair(0u, 16u));
  blocks.spec.exempt_first = 60;
  blocks.spec.exempt_last = 1000;
  EXPECT_EQ(share(3), std::make_pair(12u, 4u));
  EXPECT_EQ(share(0), std::make_pair(16u, 0u));
}

TEST_P(CacheTest, CompletionsComeThroughTheDescriptor) {
  Open();
  pollfd ready = {cache_->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  Rows rows(kBlockTokens, 7);
  kvt_status_t results[2] = {-1, -1};
  const auto keys = MakeKeys(0, 1), absent = MakeKeys(50, 1);
  ASSERT_TRUE(cache_->SubmitStore(BlocksOf(&rows), keys, &results[0], Soon()).ok());
  ASSERT_TRUE(cache_->SubmitLoad(BlocksOf(&rows), absent, &results[1], Soon()).ok());
  std::vector<kvt_completion_t> taken(8);
  size_t count = 0;
  while (count < 2) {
    ASSERT_EQ(poll(&ready, 1, 60000), 1);
    count += cache_->Poll(absl::MakeSpan(taken).subspan(count));
  }
  EXPECT_EQ(results[0], KVT_OK);
  EXPECT_EQ(results[1], KVT_ERR_NOT_FOUND);
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  EXPECT_EQ(CodeOf(cache_->Wait(taken[0].operation, Soon(), nullptr)), KVT_ERR_NOT_FOUND);
}

TEST_P(CacheTest, NoItemsIsAnOperationToo) {
  Open();
  const auto done = WaitFor(cache_->SubmitPut({}, nullptr, nullptr, nullptr, Soon()));
  EXPECT_EQ(done.items, 0u);
}

TEST_P(CacheTest, ADeadlineThatHasPassedStopsEveryItem) {
  Open();
  Rows rows(40 * kBlockTokens, 7);
  std::vector<kvt_status_t> results(40, -1);
  WaitFor(cache_->SubmitStore(BlocksOf(&rows), MakeKeys(0, 40), results.data(),
                              Deadline::After(std::chrono::seconds(0))),
          KVT_ERR_TIMEOUT);
  EXPECT_EQ(results, std::vector<kvt_status_t>(40, KVT_ERR_TIMEOUT));
  EXPECT_EQ(cache_->stats().frames, 0u);
}

TEST_P(CacheTest, CloseRefusesAndDestroyForgets) {
  Open();
  ASSERT_TRUE(cache_->Put(MakeKey(0), AsBytes(MakeFrame(0))).ok());
  ASSERT_TRUE(cache_->Close(Soon()).ok());
  EXPECT_EQ(CodeOf(cache_->Put(MakeKey(1), AsBytes(MakeFrame(1)))), KVT_ERR_CLOSED);
  EXPECT_EQ(CodeOf(cache_->Get(MakeKey(0)).status()), KVT_ERR_CLOSED);
  EXPECT_EQ(CodeOf(cache_->Match(MakeKeys(0, 1)).status()), KVT_ERR_CLOSED);
  EXPECT_EQ(CodeOf(cache_->SubmitPut({}, nullptr, nullptr, nullptr, Soon()).status()), KVT_ERR_CLOSED);
  cache_.reset();
  EXPECT_EQ(runtime_->memory_used(), 0u);
}

TEST_P(CacheTest, ManyThreadsSeeWholeFramesOnly) {
  Open(GetParam() == "mem" ? "?capacity=60KiB" : "?capacity=1MiB");
  constexpr uint32_t kKeys = 64;
  std::vector<std::string> frames;
  for (uint32_t i = 0; i < kKeys; ++i) frames.push_back(MakeFrame(i));
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      uint32_t state = thread + 1;
      for (int step = 0; step < 300; ++step) {
        state = state * 1664525u + 1013904223u;
        const uint32_t number = (state >> 16) % kKeys;
        switch (state >> 30) {
          case 0:
            EXPECT_TRUE(cache_->Put(MakeKey(number), AsBytes(frames[number])).ok());
            break;
          case 1:
            EXPECT_TRUE(cache_->Remove(MakeKeys(number, 2)).ok());
            break;
          default: {
            const auto got = cache_->Get(MakeKey(number));
            if (got.ok()) {
              EXPECT_EQ(AsText(got->bytes), frames[number]);
            } else {
              EXPECT_EQ(CodeOf(got.status()), KVT_ERR_NOT_FOUND) << got.status();
            }
          }
        }
      }
    });
  }
  Rows rows(kKeys * kBlockTokens, 7);
  const auto keys = MakeKeys(1000, kKeys);
  for (int round = 0; round < 5; ++round) {
    std::vector<kvt_status_t> results(kKeys, -1);
    WaitFor(cache_->SubmitStore(BlocksOf(&rows), keys, results.data(), Soon()));
    Rows loaded(kKeys * kBlockTokens);
    const auto load = cache_->SubmitLoad(BlocksOf(&loaded), keys, results.data(), Soon());
    ASSERT_TRUE(load.ok());
    [[maybe_unused]] const Status status = cache_->Wait(*load, Soon(), nullptr);
    for (size_t i = 0; i < kKeys; ++i) {
      if (results[i] == KVT_OK) {
        EXPECT_EQ(loaded.Block(i), rows.Block(i));
      } else {
        EXPECT_EQ(results[i], KVT_ERR_NOT_FOUND);
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache_->stats().corrupt, 0u);
}

INSTANTIATE_TEST_SUITE_P(Tiers, CacheTest, testing::Values("mem", "file"),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace kvt
