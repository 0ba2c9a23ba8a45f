#include "base/runtime.h"

#include <gtest/gtest.h>

#include <future>

namespace kvt {
namespace {

kvt_runtime_options_t Defaults() {
  kvt_runtime_options_t options;
  kvt_runtime_options_init(&options, sizeof options);
  return options;
}

TEST(RuntimeAbiTest, HandleLivesFromCreateToDestroy) {
  const kvt_runtime_options_t defaults = Defaults();
  EXPECT_EQ(defaults.threads, 2u);
  EXPECT_EQ(defaults.log_level, KVT_LOG_WARNING);
  kvt_runtime_t runtime = 0;
  ASSERT_EQ(kvt_runtime_create(nullptr, &runtime), KVT_OK);
  uint64_t used = 1;
  EXPECT_EQ(kvt_runtime_memory_used(runtime, &used), KVT_OK);
  EXPECT_EQ(used, 0u);
  EXPECT_EQ(kvt_runtime_memory_used(runtime, nullptr), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_runtime_close(runtime, 0), KVT_OK);
  EXPECT_EQ(kvt_runtime_close(runtime, -1), KVT_ERR_INVALID_ARGUMENT);
  kvt_runtime_destroy(runtime);
  kvt_runtime_destroy(runtime);
  kvt_runtime_destroy(0);
  EXPECT_EQ(kvt_runtime_memory_used(runtime, &used), KVT_ERR_STALE_HANDLE);
  EXPECT_EQ(kvt_runtime_close(runtime, 0), KVT_ERR_STALE_HANDLE);
}

TEST(RuntimeAbiTest, BadOptionsAreRefusedAndLeaveTheHandleAlone) {
  kvt_runtime_t runtime = 5;
  kvt_runtime_options_t options = Defaults();
  options.threads = 0;
  EXPECT_EQ(kvt_runtime_create(&options, &runtime), KVT_ERR_INVALID_ARGUMENT);
  options.threads = 257;
  EXPECT_EQ(kvt_runtime_create(&options, &runtime), KVT_ERR_INVALID_ARGUMENT);
  options = Defaults();
  options.reserved = 1;
  EXPECT_EQ(kvt_runtime_create(&options, &runtime), KVT_ERR_INVALID_ARGUMENT);
  options = Defaults();
  options.struct_size = 3;
  EXPECT_EQ(kvt_runtime_create(&options, &runtime), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(runtime, 5u);
  options = Defaults();
  EXPECT_EQ(kvt_runtime_create(&options, nullptr), KVT_ERR_INVALID_ARGUMENT);
}

TEST(RuntimeTest, RunsEveryTaskBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    const auto runtime = *Runtime::Create(Defaults());
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(runtime->Submit([&] { ++ran; }));
  }
  EXPECT_EQ(ran, 1000);
}

TEST(RuntimeTest, ATaskMayDropTheLastReference) {
  struct Ended {
    explicit Ended(std::promise<void>* to) : promise(to) {}
    ~Ended() { promise->set_value(); }
    std::promise<void>* promise;
  };
  // Members end in reverse order: the runtime first, then the sign that it has ended.
  struct Captured {
    std::shared_ptr<Ended> ended;
    std::shared_ptr<Runtime> runtime;
  };
  std::promise<void> ended, released;
  auto runtime = *Runtime::Create(Defaults());
  auto captured = std::make_shared<Captured>(Captured{std::make_shared<Ended>(&ended), runtime});
  Runtime* raw = runtime.get();
  raw->Submit([captured, go = released.get_future().share()] { go.wait(); });
  captured = nullptr;
  runtime = nullptr;
  released.set_value();
  ended.get_future().wait();
}

TEST(RuntimeTest, LoopsRunOnTheirOwnThread) {
  const auto runtime = *Runtime::Create(Defaults());
  std::thread::id inside;
  std::thread loop = *runtime->StartLoop("kvt-test", [&] { inside = std::this_thread::get_id(); });
  const std::thread::id outside = loop.get_id();
  loop.join();
  EXPECT_EQ(inside, outside);
}

TEST(RuntimeTest, WaitIdleWaitsForChildren) {
  const auto runtime = *Runtime::Create(Defaults());
  auto child = std::make_unique<RuntimeChild>(runtime);
  EXPECT_EQ(CodeOf(runtime->WaitIdle(Deadline::After(std::chrono::seconds(0)))), KVT_ERR_BUSY);
  std::thread other([&] { child.reset(); });
  EXPECT_TRUE(runtime->WaitIdle(Deadline::After(std::chrono::minutes(10))).ok());
  other.join();
}

TEST(RuntimeTest, MemoryLimitIsExact) {
  kvt_runtime_options_t options = Defaults();
  options.memory_limit_bytes = 100;
  const auto runtime = *Runtime::Create(options);
  {
    auto lease = MemoryLease::Take(runtime, 60);
    ASSERT_TRUE(lease.ok());
    const Status over = MemoryLease::Take(runtime, 41).status();
    EXPECT_EQ(CodeOf(over), KVT_ERR_LIMIT);
    EXPECT_NE(over.message().find("60 of 100"), absl::string_view::npos) << over;
    EXPECT_EQ(CodeOf(runtime->Charge(UINT64_MAX)), KVT_ERR_LIMIT);
    auto rest = MemoryLease::Take(runtime, 40);
    ASSERT_TRUE(rest.ok());
    EXPECT_EQ(runtime->memory_used(), 100u);
    MemoryLease moved = std::move(*rest);
    moved = MemoryLease();
    EXPECT_EQ(runtime->memory_used(), 60u);
  }
  EXPECT_EQ(runtime->memory_used(), 0u);
}

TEST(RuntimeTest, ManyThreadsNeverExceedTheLimit) {
  kvt_runtime_options_t options = Defaults();
  options.memory_limit_bytes = 10;
  const auto runtime = *Runtime::Create(options);
  std::atomic<int> held{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const auto lease = MemoryLease::Take(runtime, 3);
        if (!lease.ok()) continue;
        const int now = held += 3;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        held -= 3;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 10);
  EXPECT_GE(most, 3);
  EXPECT_EQ(runtime->memory_used(), 0u);
}

TEST(RuntimeTest, LogGoesToTheHostFromItsLevelOn) {
  std::vector<std::pair<int32_t, std::string>> lines;
  kvt_runtime_options_t options = Defaults();
  options.log_context = &lines;
  options.log_level = KVT_LOG_INFO;
  options.log = [](void* context, int32_t level, const char* message, size_t length) {
    static_cast<decltype(lines)*>(context)->emplace_back(level, std::string(message, length));
  };
  const auto runtime = *Runtime::Create(options);
  runtime->Log(KVT_LOG_DEBUG, "not this");
  runtime->Log(KVT_LOG_INFO, absl::string_view("with a \0 in it", 14));
  runtime->Log(KVT_LOG_ERROR, "");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], std::make_pair(int32_t{KVT_LOG_INFO}, std::string("with a \0 in it", 14)));
  EXPECT_EQ(lines[1].first, KVT_LOG_ERROR);
  const auto silent = *Runtime::Create(Defaults());
  EXPECT_FALSE(silent->ShouldLog(KVT_LOG_ERROR));
  silent->Log(KVT_LOG_ERROR, "nowhere");
}

TEST(RuntimeTest, WhatATaskThrowsIsLoggedAndTheNextOneRuns) {
  std::string line;
  kvt_runtime_options_t options = Defaults();
  options.threads = 1;
  options.log_context = &line;
  options.log = [](void* context, int32_t, const char* text, size_t size) {
    static_cast<std::string*>(context)->assign(text, size);
  };
  std::promise<void> ran;
  const auto runtime = *Runtime::Create(options);
  ASSERT_TRUE(runtime->Submit([] { throw std::bad_alloc(); }));
  ASSERT_TRUE(runtime->Submit([&] { ran.set_value(); }));
  ran.get_future().wait();
  EXPECT_NE(line.find("out of memory"), std::string::npos) << line;
}

TEST(DeadlineTest, TimeoutsAreChecked) {
  EXPECT_EQ(CodeOf(Deadline::FromTimeout(-1).status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_TRUE(Deadline::FromTimeout(0)->Expired());
  EXPECT_EQ(Deadline::FromTimeout(0)->RemainingMs(), 0);
  const auto longest = Deadline::FromTimeout(INT64_MAX);
  ASSERT_TRUE(longest.ok());
  EXPECT_FALSE(longest->Expired());
  EXPECT_EQ(longest->RemainingMs(), 1 << 30);
}

}  // namespace
}  // namespace kvt
