// Cancelling: at once while no worker has come to the operation, else after the block in hand.
#include "cache/job.h"

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "unit/cache/fixture.h"

namespace kvt {
namespace {

using std::chrono::seconds;

// A gate that a worker of the runtime waits at.
class Gate {
 public:
  ~Gate() { Open(); }
  void Wait() {
    std::unique_lock lock(mu_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void AwaitWaiters(int count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }
  void Open() {
    const std::lock_guard lock(mu_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

TEST(Cancel, DoesNotWaitForABusyWorker) {
  const auto runtime = MakeRuntime(1);
  const auto cache = *Cache::Open(runtime, "mem:");
  const auto keys = MakeKeys(0, 100);
  std::string frames;
  std::vector<uint64_t> lengths;
  for (uint32_t i = 0; i < 100; ++i) {
    frames += MakeFrame(i);
    lengths.push_back(MakeFrame(i).size());
  }
  std::vector<kvt_status_t> results(100, 77);
  Gate gate;
  ASSERT_TRUE(runtime->Submit([&] { gate.Wait(); }));
  gate.AwaitWaiters(1);
  const auto operation = cache->SubmitPut(keys, reinterpret_cast<const uint8_t*>(frames.data()),
                                          lengths.data(), results.data(), Soon());
  ASSERT_TRUE(operation.ok()) << operation.status();
  auto cancelled = std::async(std::launch::async, [&] { return CodeOf(cache->Cancel(*operation)); });
  const bool at_once = cancelled.wait_for(seconds(20)) == std::future_status::ready;
  if (!at_once) gate.Open();
  ASSERT_TRUE(at_once) << "it waits for the worker";
  EXPECT_EQ(cancelled.get(), KVT_OK);
  EXPECT_EQ(results, std::vector<kvt_status_t>(100, KVT_ERR_CANCELLED));
  kvt_completion_t done = {};
  EXPECT_EQ(CodeOf(cache->Wait(*operation, Soon(), &done)), KVT_ERR_CANCELLED);
  EXPECT_EQ(done.items, 100u);
  EXPECT_EQ(done.items_ok, 0u);
  // Destroying does not wait either, and the worker finds nothing to do when it comes.
  ASSERT_TRUE(cache
                  ->SubmitPut(keys, reinterpret_cast<const uint8_t*>(frames.data()), lengths.data(),
                              results.data(), Soon())
                  .ok());
  auto shut = std::async(std::launch::async, [&] { cache->Shutdown(); });
  EXPECT_EQ(shut.wait_for(seconds(20)), std::future_status::ready) << "it waits for the worker";
  gate.Open();
  shut.get();
}

// Stops at each item until it is let go on.
class SlowJob : public Job {
 public:
  SlowJob(Runtime* runtime, std::vector<kvt_status_t>* results, Gate* gate, Finish finish)
      : Job(runtime, results->data(), results->size(), std::move(finish)), gate_(gate) {}
  std::atomic<int> worked{0};

 private:
  void Run(size_t begin, size_t end) override {
    for (size_t item = begin; item < end; ++item) {
      const Status status = Stop();
      if (status.ok()) {
        ++worked;
        gate_->Wait();
      }
      Report(item, status, 1);
    }
  }
  Gate* const gate_;
};

TEST(Cancel, WaitsForTheBlockInHandAndNoMore) {
  const auto runtime = MakeRuntime(2);
  const auto operations = *Operations::Create(runtime->operation_times());
  std::vector<kvt_status_t> results(1000, 77);
  Gate gate;
  std::atomic<int> finished{0};
  const auto job = std::make_shared<SlowJob>(
      runtime.get(), &results, &gate,
      [&](const Operation& done, const kvt_completion_t& completion, const std::string&) {
        ++finished;
        operations->Finish(done, completion);
      });
  std::promise<void> told;
  auto operation =
      *operations->Begin(OperationKind::kLoad, Soon(), [&told, weak = std::weak_ptr<SlowJob>(job)] {
        if (const auto cancelled = weak.lock()) cancelled->Cancel();
        told.set_value();
      });
  const uint64_t id = operation->id();
  job->Start(std::move(operation));
  gate.AwaitWaiters(2);
  auto cancelled = std::async(std::launch::async, [&] { return CodeOf(operations->Cancel(id)); });
  told.get_future().wait();
  // Two blocks are in hand, so it has to wait; of all others it is known how they end.
  EXPECT_EQ(finished, 0);
  gate.Open();
  EXPECT_EQ(cancelled.get(), KVT_OK);
  EXPECT_EQ(job->worked, 2);
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(std::count(results.begin(), results.end(), KVT_OK), 2);
  EXPECT_EQ(std::count(results.begin(), results.end(), KVT_ERR_CANCELLED), 998);
}

TEST(Cancel, RacesWithTheWorkersAndEndsOnce) {
  const auto runtime = MakeRuntime(3);
  const auto cache = *Cache::Open(runtime, "mem:");
  const auto keys = MakeKeys(0, 200);
  const std::string frame = MakeFrame(0);
  std::string frames;
  for (int i = 0; i < 200; ++i) frames += frame;
  const std::vector<uint64_t> lengths(200, frame.size());
  for (int round = 0; round < 200; ++round) {
    std::vector<kvt_status_t> results(200, 77);
    const auto operation = cache->SubmitPut(keys, reinterpret_cast<const uint8_t*>(frames.data()),
                                            lengths.data(), results.data(), Soon());
    ASSERT_TRUE(operation.ok());
    for (int spin = 0; spin < round * 20; ++spin) std::this_thread::yield();
    ASSERT_TRUE(cache->Cancel(*operation).ok());
    for (const kvt_status_t result : results) ASSERT_NE(result, 1) << "an item was not decided";
    kvt_completion_t done = {};
    (void)cache->Wait(*operation, Soon(), &done);
    ASSERT_EQ(static_cast<uint64_t>(std::count(results.begin(), results.end(), KVT_OK)), done.items_ok);
  }
}

}  // namespace
}  // namespace kvt
