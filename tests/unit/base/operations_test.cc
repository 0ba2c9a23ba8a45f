#include "base/operations.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <future>
#include <map>
#include <thread>

namespace kvt {
namespace {

using std::chrono::minutes;

constexpr OperationKind kKind = OperationKind::kLoad;
Deadline Far() { return Deadline::After(minutes(10)); }
Deadline Now() { return Deadline::After(std::chrono::seconds(0)); }

kvt_completion_t Result(kvt_status_t status, uint64_t bytes = 0) {
  kvt_completion_t completion = {};
  completion.status = status;
  completion.bytes = bytes;
  return completion;
}

class OperationsTest : public testing::Test {
 protected:
  bool Readable() const {
    pollfd fd = {operations_->event_fd(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }
  std::vector<kvt_completion_t> Poll(size_t most) {
    std::vector<kvt_completion_t> out(most);
    out.resize(operations_->Poll(absl::MakeSpan(out)));
    return out;
  }
  const std::shared_ptr<OperationTimes> times_ = std::make_shared<OperationTimes>();
  std::unique_ptr<Operations> operations_ = std::move(*Operations::Create(times_));
};

TEST_F(OperationsTest, TheirTimesAreCountedByKind) {
  const auto load = *operations_->Begin(OperationKind::kLoad, Far());
  const auto lost = *operations_->Begin(OperationKind::kLoad, Far());
  const auto push = *operations_->Begin(OperationKind::kPush, Far());
  operations_->Part(*load, Result(KVT_OK, 1));
  operations_->Finish(*load, Result(KVT_OK));
  operations_->Finish(*lost, Result(KVT_ERR_NOT_FOUND));
  EXPECT_EQ(Histogram::Counts(times_->times(OperationKind::kLoad)).total(), 2u);
  EXPECT_EQ(times_->failed(OperationKind::kLoad), 1u);
  EXPECT_EQ(Histogram::Counts(times_->times(OperationKind::kPush)).total(), 0u);
  operations_->Finish(*push, Result(KVT_OK));
  EXPECT_EQ(Histogram::Counts(times_->times(OperationKind::kPush)).total(), 1u);
  EXPECT_EQ(times_->failed(OperationKind::kPush), 0u);
}

TEST_F(OperationsTest, CompletionsComeInOrderAndTheDescriptorIsReadableWhileTheyWait) {
  EXPECT_FALSE(Readable());
  const auto first = *operations_->Begin(kKind, Far()), second = *operations_->Begin(kKind, Far());
  EXPECT_NE(first->id(), second->id());
  EXPECT_FALSE(Readable());
  operations_->Part(*first, Result(KVT_OK, 1));
  EXPECT_TRUE(Readable());
  operations_->Finish(*second, Result(KVT_ERR_IO, 2));
  operations_->Finish(*first, Result(KVT_OK, 3));
  auto taken = Poll(2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].operation, first->id());
  EXPECT_EQ(taken[0].kind, static_cast<uint32_t>(KVT_COMPLETION_PART));
  EXPECT_EQ(taken[1].operation, second->id());
  EXPECT_EQ(taken[1].status, KVT_ERR_IO);
  EXPECT_TRUE(Readable()) << "one still waits";
  taken = Poll(8);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].kind, static_cast<uint32_t>(KVT_COMPLETION_DONE));
  EXPECT_FALSE(Readable());
  EXPECT_TRUE(Poll(8).empty());
}

TEST_F(OperationsTest, IdsOfAnotherOwnerAreNotFound) {
  const std::unique_ptr<Operations> other = std::move(*Operations::Create(times_));
  const auto mine = *operations_->Begin(kKind, Deadline::After(std::chrono::hours(1)));
  const auto theirs = *other->Begin(kKind, Deadline::After(std::chrono::hours(1)));
  EXPECT_EQ(CodeOf(operations_->Cancel(theirs->id())), KVT_ERR_NOT_FOUND);
  EXPECT_FALSE(mine->cancelled());
  operations_->Finish(*mine, Result(KVT_OK));
  other->Finish(*theirs, Result(KVT_OK));
}

TEST_F(OperationsTest, WaitTakesDoneAndDropsParts) {
  const auto operation = *operations_->Begin(kKind, Far()), other = *operations_->Begin(kKind, Far());
  operations_->Part(*operation, Result(KVT_OK));
  operations_->Part(*other, Result(KVT_OK));
  EXPECT_EQ(CodeOf(operations_->Wait(operation->id(), Now()).status()), KVT_ERR_TIMEOUT);
  std::thread worker([&] { operations_->Finish(*operation, Result(KVT_OK, 5)); });
  const auto done = operations_->Wait(operation->id(), Far());
  worker.join();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->bytes, 5u);
  EXPECT_EQ(CodeOf(operations_->Wait(operation->id(), Now()).status()), KVT_ERR_NOT_FOUND);
  EXPECT_TRUE(Readable()) << "the other's part still waits";
  EXPECT_EQ(Poll(8).size(), 1u);
  operations_->Finish(*other, Result(KVT_OK));
  EXPECT_TRUE(operations_->Wait(other->id(), Now()).ok());
  EXPECT_FALSE(Readable());
  EXPECT_EQ(CodeOf(operations_->Wait(12345, Far()).status()), KVT_ERR_NOT_FOUND);
}

TEST_F(OperationsTest, CancelWakesTheWorkerAndReturnsWhenItHasEnded) {
  std::promise<void> wake;
  std::atomic<int> calls{0};
  const auto operation = *operations_->Begin(kKind, Far(), [&] {
    ++calls;
    wake.set_value();
  });
  EXPECT_TRUE(operation->Stop().ok());
  std::atomic<bool> ended{false};
  std::thread worker([&] {
    wake.get_future().wait();
    const Status stop = operation->Stop();
    ended = true;
    operations_->Finish(*operation, Result(CodeOf(stop)));
  });
  std::thread second([&] { EXPECT_TRUE(operations_->Cancel(operation->id()).ok()); });
  EXPECT_TRUE(operations_->Cancel(operation->id()).ok());
  EXPECT_TRUE(ended);
  worker.join();
  second.join();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(operations_->Cancel(operation->id()).ok()) << "ended, not taken";
  EXPECT_EQ(operations_->Wait(operation->id(), Now())->status, KVT_ERR_CANCELLED);
  EXPECT_EQ(CodeOf(operations_->Cancel(operation->id())), KVT_ERR_NOT_FOUND);
}

TEST_F(OperationsTest, DeadlineStops) {
  const auto operation = *operations_->Begin(kKind, Now());
  EXPECT_EQ(CodeOf(operation->Stop()), KVT_ERR_TIMEOUT);
  operations_->Finish(*operation, Result(KVT_ERR_TIMEOUT));
}

TEST_F(OperationsTest, CloseRefusesNewWorkAndLetsOldWorkEnd) {
  const auto operation = *operations_->Begin(kKind, Far());
  operations_->Close();
  EXPECT_EQ(CodeOf(operations_->Begin(kKind, Far()).status()), KVT_ERR_CLOSED);
  const Status busy = operations_->WaitIdle(Now());
  EXPECT_EQ(CodeOf(busy), KVT_ERR_TIMEOUT);
  std::thread worker([&] { operations_->Finish(*operation, Result(KVT_OK)); });
  EXPECT_TRUE(operations_->WaitIdle(Far()).ok());
  worker.join();
  EXPECT_EQ(Poll(8).size(), 1u) << "completions survive close";
}

TEST_F(OperationsTest, DestructionCancelsWhatRuns) {
  std::promise<void> wake;
  const auto operation = *operations_->Begin(kKind, Far(), [&] { wake.set_value(); });
  std::thread worker([&, operations = operations_.get()] {
    wake.get_future().wait();
    operations->Finish(*operation, Result(KVT_ERR_CANCELLED));
  });
  operations_.reset();
  worker.join();
  EXPECT_TRUE(operation->cancelled());
}

TEST_F(OperationsTest, LimitCountsRunningAndUntaken) {
  const auto operation = *operations_->Begin(kKind, Far());
  for (size_t i = 0; i + 1 < Operations::kMax; ++i) operations_->Part(*operation, Result(KVT_OK));
  EXPECT_EQ(CodeOf(operations_->Begin(kKind, Far()).status()), KVT_ERR_LIMIT);
  EXPECT_EQ(Poll(1).size(), 1u);
  const auto more = operations_->Begin(kKind, Far());
  ASSERT_TRUE(more.ok()) << more.status();
  operations_->Finish(**more, Result(KVT_OK));
  operations_->Finish(*operation, Result(KVT_OK));
}

// Many workers finish while many takers poll: every operation is seen exactly once, and the descriptor ends
// unreadable.
TEST_F(OperationsTest, ManyThreadsLoseAndDoubleNothing) {
  constexpr int kWorkers = 4, kEach = 2000, kTakers = 3;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWorkers; ++w) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const auto operation = *operations_->Begin(kKind, Far());
        operations_->Finish(*operation, Result(KVT_OK));
      }
    });
  }
  std::atomic<int> left{kWorkers * kEach};
  std::vector<std::map<uint64_t, int>> seen(kTakers);
  for (int t = 0; t < kTakers; ++t) {
    threads.emplace_back([&, t] {
      while (left > 0) {
        pollfd fd = {operations_->event_fd(), POLLIN, 0};
        poll(&fd, 1, 10);
        for (const kvt_completion_t& completion : Poll(7)) {
          ++seen[t][completion.operation];
          --left;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<uint64_t, int> all;
  for (const auto& part : seen) {
    for (const auto& [id, count] : part) all[id] += count;
  }
  EXPECT_EQ(all.size(), static_cast<size_t>(kWorkers * kEach));
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](const auto& entry) { return entry.second == 1; }));
  EXPECT_FALSE(Readable());
}

}  // namespace
}  // namespace kvt
