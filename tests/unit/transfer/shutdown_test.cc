// Closing and destroying a node: what it waits for, and what not.
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "transfer/pull.h"
#include "unit/transfer/fixture.h"

namespace kvt::transfer {
namespace {

using std::chrono::seconds;

// As a cache on a disk: its calls belong on a worker.
class BlockingStore : public FrameStore {
 public:
  StatusOr<Pinned> Get(const Key&) override {
    ++calls;
    return Error(KVT_ERR_NOT_FOUND, "no such frame");
  }
  Status Put(const Key&, Pinned) override { return OkStatus(); }
  bool Blocks() const override { return true; }
  std::atomic<int> calls{0};
};

struct Asker {
  std::shared_ptr<Endpoint> endpoint;
  std::vector<Key> keys = {MakeKey(0)};
  std::vector<uint8_t> memory = std::vector<uint8_t>(4096);
  uint64_t length = 0;
  kvt_status_t status = 77;

  Asker() {
    EndpointOptions options = ServerOptions();
    options.listen.clear();
    endpoint = *Endpoint::Create(MakeRuntime(1), options);
  }
  ~Asker() { endpoint->Shutdown(); }
  void Pull(const std::string& url) {
    const auto remote = endpoint->Connect(url, Soon());
    ASSERT_TRUE(remote.ok()) << remote.status();
    const Results results{&status, &length, 1};
    ASSERT_TRUE((*remote)
                    ->Submit(std::make_shared<PullOp>(keys, memory.data(), memory.size(), results), Soon())
                    .ok());
  }
};

// A server whose runtime's only worker is busy, with a pull that waits for it.
class BusyWorker : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_TRUE(runtime_->Submit([this] {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [this] { return free_; });
    }));
    server_ = *Endpoint::Create(runtime_, ServerOptions());
    EXPECT_TRUE(server_->Serve(store_).ok());
    asker_.Pull(server_->url());
    // The pull has come once a task for it, which holds the store too, waits for the worker.
    while (store_.use_count() < 3) std::this_thread::yield();
  }
  void TearDown() override {
    Free();
    server_->Shutdown();
  }
  void Free() {
    const std::lock_guard lock(mu_);
    free_ = true;
    changed_.notify_all();
  }

  std::mutex mu_;
  std::condition_variable changed_;
  bool free_ = false;
  const std::shared_ptr<Runtime> runtime_ = MakeRuntime(1);
  const std::shared_ptr<BlockingStore> store_ = std::make_shared<BlockingStore>();
  std::shared_ptr<Endpoint> server_;
  Asker asker_;
};

TEST_F(BusyWorker, DestroyDoesNotWaitForTheQueueOfTheRuntime) {
  auto shut = std::async(std::launch::async, [&] { server_->Shutdown(); });
  EXPECT_EQ(shut.wait_for(seconds(20)), std::future_status::ready) << "it waits for the worker";
  // What was queued is gone with the node: the worker finds nothing to do.
  EXPECT_EQ(store_.use_count(), 2);
  Free();
  shut.get();
  auto drained = std::make_shared<std::promise<void>>();
  ASSERT_TRUE(runtime_->Submit([drained] { drained->set_value(); }));
  drained->get_future().wait();
  EXPECT_EQ(store_->calls, 0);
}

TEST_F(BusyWorker, CloseSaysSoWhenItsTimeIsOverAndAnswersAreOwed) {
  // However its deadline and the loop's own look at it meet.
  for (int round = 0; round < 300; ++round) {
    const Status closed = server_->Close(Deadline::After(std::chrono::microseconds(round * 20)));
    ASSERT_EQ(CodeOf(closed), KVT_ERR_TIMEOUT) << round;
  }
  Free();
  EXPECT_TRUE(server_->Close(Soon()).ok());
}

}  // namespace
}  // namespace kvt::transfer
