// Peers that die, stop, crawl or are given up in the middle of a transfer.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>
#include <memory>
#include <thread>

#include "unit/node/fixture.h"

namespace kvt_test {
namespace {

using Clock = std::chrono::steady_clock;

int64_t MsSince(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

// node_peer in a process of its own.
class OtherProcess {
 public:
  OtherProcess(const std::string& listen, int count, int tokens) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    const std::string counts = std::to_string(count), sizes = std::to_string(tokens);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      execl(KVT_NODE_PEER, "node_peer", listen.c_str(), counts.c_str(), sizes.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    char c;
    while (read(out[0], &c, 1) == 1 && c != '\n') url_ += c;
    close(out[0]);
    EXPECT_FALSE(url_.empty());
  }
  ~OtherProcess() {
    Signal(SIGCONT);
    close(input_);
    int status = 0;
    waitpid(pid_, &status, 0);
  }
  void Signal(int signal) const { kill(pid_, signal); }
  const std::string& url() const { return url_; }

 private:
  pid_t pid_ = 0;
  int input_ = -1;
  std::string url_;
};

// Waits until some payload has arrived.
void WaitForBytes(const Side& side, uint64_t bytes) {
  while (side.Stats().bytes_received < bytes) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

constexpr int kBlocks = 48, kTokens = 256;  // half a MiB each

class FaultTest : public testing::TestWithParam<bool> {
 protected:
  // 20 MB/s: more than a second for all blocks.
  std::string Listen(const std::string& bandwidth = "20MB") {
    return (GetParam() ? socket_.url() : "tcp://127.0.0.1:0") + "?bandwidth=" + bandwidth;
  }
  // What is OK is right, and the rest says `status`.
  void CheckPartial(const Side& side, const Pull& pull, kvt_status_t status) {
    size_t ok = 0;
    for (uint32_t i = 0; i < kBlocks; ++i) {
      if (pull.results[i] == KVT_OK) {
        ++ok;
        EXPECT_EQ(pull.Frame(i), MakeFrame(side.model, MakeKey(i), kTokens, i));
      } else {
        EXPECT_EQ(pull.results[i], status);
        EXPECT_EQ(pull.lengths[i], 0u);
      }
    }
    EXPECT_GT(ok, 0u);
    EXPECT_LT(ok, static_cast<size_t>(kBlocks));
    EXPECT_EQ(pull.completion.items_ok, ok);
    EXPECT_EQ(pull.completion.status, status);
  }
  SocketPath socket_;
};
INSTANTIATE_TEST_SUITE_P(Transports, FaultTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Unix" : "Tcp"; });

TEST_P(FaultTest, APeerThatIsKilledIsDeadAtOnce) {
  Side side({});
  OtherProcess other(Listen(), kBlocks, kTokens);
  const kvt_peer_t peer = side.Connect(other.url());
  Pull pull(kBlocks, 1 << 20);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, kBlocks)));
  WaitForBytes(side, 2 << 20);
  other.Signal(SIGKILL);
  const auto killed = Clock::now();
  EXPECT_EQ(pull.Wait(side.node), KVT_ERR_PEER_DEAD);
  EXPECT_LT(MsSince(killed), 1500);
  CheckPartial(side, pull, KVT_ERR_PEER_DEAD);
  EXPECT_EQ(pull.Submit(peer, MakeKeys(0, kBlocks)), KVT_ERR_PEER_DEAD);
  EXPECT_NE(LastError().find("closed"), std::string::npos) << LastError();
}

TEST_P(FaultTest, APeerThatIsStoppedStallsAndMayRecover) {
  Side side({.stall_ms = 300});
  OtherProcess other(Listen("40MB"), kBlocks, kTokens);
  const kvt_peer_t peer = side.Connect(other.url());
  Pull pull(kBlocks, 1 << 20);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, kBlocks)));
  WaitForBytes(side, 2 << 20);
  other.Signal(SIGSTOP);
  const auto stopped = Clock::now();
  EXPECT_EQ(pull.Wait(side.node), KVT_ERR_STALLED);
  EXPECT_GE(MsSince(stopped), 250);
  EXPECT_LT(MsSince(stopped), 10'000);
  CheckPartial(side, pull, KVT_ERR_STALLED);
  // A deadline below the stall time is a deadline, one above it a stall.
  Pull again(kBlocks, 1 << 20);
  KVT_ASSERT_OK(again.Submit(peer, MakeKeys(0, kBlocks)));
  EXPECT_EQ(again.Wait(side.node), KVT_ERR_STALLED);
  Pull brief(kBlocks, 1 << 20);
  KVT_ASSERT_OK(brief.Submit(peer, MakeKeys(0, kBlocks), 100));
  EXPECT_EQ(brief.Wait(side.node), KVT_ERR_TIMEOUT);
  other.Signal(SIGCONT);
  KVT_ASSERT_OK(again.Submit(peer, MakeKeys(0, kBlocks)));
  KVT_EXPECT_OK(again.Wait(side.node));
}

TEST_P(FaultTest, APeerThatIsSlowTimesOut) {
  Side producer({.listen = Listen("1MB"), .stall_ms = 300}), side({.stall_ms = 300});
  for (uint32_t i = 0; i < 8; ++i) producer.Put(MakeKey(i), MakeFrame(side.model, MakeKey(i), kTokens, i));
  const kvt_peer_t peer = side.Connect(producer.url());
  Pull pull(8, 1 << 20);
  const auto start = Clock::now();
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, 8), 700));
  EXPECT_EQ(pull.Wait(side.node), KVT_ERR_TIMEOUT);
  EXPECT_GE(MsSince(start), 700);
  // A peer that has nothing to send is alive too: the stream is never opened.
  std::vector<uint8_t> memory(100);
  uint64_t offset, length, operation;
  KVT_ASSERT_OK(kvt_peer_submit_pull_stream(peer, MakeKey(9).data(), memory.data(), memory.size(), &offset,
                                            &length, 1, 900, &operation));
  EXPECT_EQ(kvt_node_wait(side.node, operation, kLong, nullptr), KVT_ERR_TIMEOUT);
}

// Memory that is gone, not only freed, when a test gives it back.
struct Mapped {
  explicit Mapped(size_t bytes)
      : size(bytes),
        data(static_cast<uint8_t*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  void Unmap() { munmap(data, size); }
  size_t size;
  uint8_t* data;
};

TEST_P(FaultTest, ACancelledPullLeavesTheMemoryAlone) {
  Side producer({.listen = Listen("200MB")}), side({});
  for (uint32_t i = 0; i < kBlocks; ++i)
    producer.Put(MakeKey(i), MakeFrame(side.model, MakeKey(i), kTokens, i));
  const kvt_peer_t peer = side.Connect(producer.url());
  for (int round = 0; round < 5; ++round) {
    Mapped memory(static_cast<size_t>(kBlocks) << 20);
    std::vector<uint64_t> lengths(kBlocks);
    std::vector<kvt_status_t> results(kBlocks, 1);
    uint64_t operation = 0;
    const uint64_t before = side.Stats().bytes_received;
    KVT_ASSERT_OK(kvt_peer_submit_pull(peer, MakeKeys(0, kBlocks).data(), kBlocks, memory.data, 1 << 20,
                                       lengths.data(), results.data(), kLong, &operation));
    WaitForBytes(side, before + (static_cast<uint64_t>(round) << 20) + 1);
    KVT_ASSERT_OK(kvt_node_cancel(side.node, operation));
    memory.Unmap();
    kvt_completion_t completion;
    EXPECT_EQ(kvt_node_wait(side.node, operation, 0, &completion), KVT_ERR_CANCELLED);
    EXPECT_EQ(completion.status, KVT_ERR_CANCELLED);
  }
  // The connection is as good as before.
  Pull pull(kBlocks, 1 << 20);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, kBlocks)));
  KVT_EXPECT_OK(pull.Wait(side.node));
  EXPECT_EQ(kvt_node_cancel(side.node, 12345), KVT_ERR_NOT_FOUND);
}

TEST_P(FaultTest, ACancelledPushLeavesTheMemoryAlone) {
  Side receiver({.listen = GetParam() ? socket_.url() : "tcp://127.0.0.1:0"}), side({});
  const kvt_peer_t peer = side.Connect(receiver.url() + "?bandwidth=50MB");
  const auto frame = MakeFrame(side.model, MakeKey(0), kTokens, 0);
  std::vector<uint8_t> keys;
  for (int i = 0; i < kBlocks; ++i) {
    const auto key = MakeKey(0);
    keys.insert(keys.end(), key.begin(), key.end());
  }
  for (int round = 0; round < 5; ++round) {
    Mapped memory(kBlocks * frame.size());
    std::vector<uint64_t> lengths(kBlocks, frame.size());
    std::vector<kvt_status_t> results(kBlocks, 1);
    for (int i = 0; i < kBlocks; ++i)
      std::memcpy(memory.data + static_cast<size_t>(i) * frame.size(), frame.data(), frame.size());
    uint64_t operation = 0;
    const uint64_t before = receiver.Stats().bytes_received;
    KVT_ASSERT_OK(kvt_peer_submit_push(peer, keys.data(), kBlocks, memory.data, lengths.data(),
                                       results.data(), kLong, &operation));
    WaitForBytes(receiver, before + 1'000'000);
    KVT_ASSERT_OK(kvt_node_cancel(side.node, operation));
    memory.Unmap();
    EXPECT_EQ(kvt_node_wait(side.node, operation, 0, nullptr), KVT_ERR_CANCELLED);
  }
  kvt_status_t result = 1;
  const uint64_t length = frame.size();
  uint64_t operation = 0;
  KVT_ASSERT_OK(
      kvt_peer_submit_push(peer, MakeKey(0).data(), 1, frame.data(), &length, &result, kLong, &operation));
  KVT_EXPECT_OK(kvt_node_wait(side.node, operation, kLong, nullptr));
  EXPECT_EQ(receiver.Get(MakeKey(0)), frame);
}

TEST_P(FaultTest, DestroyingANodeOrPeerEndsItsOperations) {
  Side producer({.listen = Listen("20MB")});
  for (uint32_t i = 0; i < kBlocks; ++i)
    producer.Put(MakeKey(i), MakeFrame(producer.model, MakeKey(i), kTokens, i));
  for (const bool whole_node : {false, true}) {
    Side side({});
    const kvt_peer_t peer = side.Connect(producer.url());
    Mapped memory(static_cast<size_t>(kBlocks) << 20);
    std::vector<uint64_t> lengths(kBlocks);
    std::vector<kvt_status_t> results(kBlocks, 1);
    uint64_t operation = 0, stream_operation = 0, offset = 0, length = 0;
    KVT_ASSERT_OK(kvt_peer_submit_pull(peer, MakeKeys(0, kBlocks).data(), kBlocks, memory.data, 1 << 20,
                                       lengths.data(), results.data(), kLong, &operation));
    KVT_ASSERT_OK(kvt_peer_submit_pull_stream(peer, MakeKey(1).data(), memory.data, memory.size, &offset,
                                              &length, 1, kLong, &stream_operation));
    WaitForBytes(side, 1 << 20);
    if (whole_node) {
      kvt_node_destroy(side.node);
      memory.Unmap();
      EXPECT_EQ(results.back(), KVT_ERR_CANCELLED);
      EXPECT_EQ(kvt_node_wait(side.node, operation, kLong, nullptr), KVT_ERR_STALE_HANDLE);
      EXPECT_EQ(kvt_peer_submit_pull(peer, MakeKey(0).data(), 1, reinterpret_cast<uint8_t*>(&offset), 0,
                                     lengths.data(), results.data(), 0, &operation),
                KVT_ERR_STALE_HANDLE);
    } else {
      kvt_peer_destroy(peer);
      EXPECT_EQ(kvt_node_wait(side.node, operation, kLong, nullptr), KVT_ERR_CANCELLED);
      EXPECT_EQ(kvt_node_wait(side.node, stream_operation, kLong, nullptr), KVT_ERR_CANCELLED);
      memory.Unmap();
    }
  }
}

TEST_P(FaultTest, AProducerThatIsDestroyedIsDead) {
  auto producer = std::make_unique<Side>(Side::Setup{.listen = Listen("20MB")});
  Side side({});
  for (uint32_t i = 0; i < kBlocks; ++i)
    producer->Put(MakeKey(i), MakeFrame(side.model, MakeKey(i), kTokens, i));
  const kvt_peer_t peer = side.Connect(producer->url());
  Pull pull(kBlocks, 1 << 20);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, kBlocks)));
  WaitForBytes(side, 2 << 20);
  producer.reset();
  EXPECT_EQ(pull.Wait(side.node), KVT_ERR_PEER_DEAD);
  CheckPartial(side, pull, KVT_ERR_PEER_DEAD);
}

// Requests and streams belong to a connection, and a connection to one run of the peer: nothing of the run
// before is mixed up with what the next one has.
TEST_P(FaultTest, ARestartedPeerIsAnotherOne) {
  Side side({});
  auto producer = std::make_unique<Side>(Side::Setup{.listen = Listen("400MB")});
  const std::string url = producer->url();
  const std::vector<uint8_t> old_frame = MakeFrame(side.model, MakeKey(0), 16, 1),
                             new_frame = MakeFrame(side.model, MakeKey(0), 16, 2);
  producer->Put(MakeKey(0), old_frame);
  kvt_stream_t stream = 0;
  KVT_ASSERT_OK(kvt_stream_open(producer->node, MakeKey(7).data(), &stream));
  KVT_ASSERT_OK(kvt_stream_append(stream, old_frame.data(), old_frame.size()));
  const auto submit = [&](kvt_peer_t peer, std::vector<uint8_t>* memory, uint64_t* place,
                          uint64_t* operation) {
    return kvt_peer_submit_pull_stream(peer, MakeKey(7).data(), memory->data(), memory->size(), place,
                                       place + 4, 4, kLong, operation);
  };
  const kvt_peer_t before = side.Connect(url);
  std::vector<uint8_t> memory(1 << 20);
  uint64_t place[8] = {}, operation = 0;
  KVT_ASSERT_OK(submit(before, &memory, place, &operation));
  while (side.Stats().frames_received == 0) std::this_thread::yield();
  producer.reset();
  kvt_completion_t done = {};
  EXPECT_EQ(kvt_node_wait(side.node, operation, kLong, &done), KVT_ERR_PEER_DEAD);
  EXPECT_EQ(done.items_ok, 1u);

  producer = std::make_unique<Side>(Side::Setup{.listen = url});
  ASSERT_EQ(producer->opened, KVT_OK) << LastError();
  Pull stale(1, 64 << 10);
  EXPECT_EQ(stale.Submit(before, MakeKey(0)), KVT_ERR_PEER_DEAD);
  const kvt_peer_t after = side.Connect(url);
  Pull pull(1, 64 << 10);
  KVT_ASSERT_OK(pull.Submit(after, MakeKey(0)));
  EXPECT_EQ(pull.Wait(side.node), KVT_ERR_NOT_FOUND);
  KVT_ASSERT_OK(submit(after, &memory, place, &operation));
  KVT_ASSERT_OK(kvt_stream_open(producer->node, MakeKey(7).data(), &stream));
  KVT_ASSERT_OK(kvt_stream_append(stream, new_frame.data(), new_frame.size()));
  KVT_ASSERT_OK(kvt_stream_finish(stream, 1));
  KVT_EXPECT_OK(kvt_node_wait(side.node, operation, kLong, &done));
  EXPECT_EQ(done.items_ok, 1u);
  ASSERT_EQ(place[4], new_frame.size());
  EXPECT_EQ(std::memcmp(memory.data() + place[0], new_frame.data(), new_frame.size()), 0);
}

TEST_P(FaultTest, ManyThreadsCancelAndWait) {
  Side producer({.listen = Listen("400MB")}), side({});
  for (uint32_t i = 0; i < kBlocks; ++i) producer.Put(MakeKey(i), MakeFrame(side.model, MakeKey(i), 16, i));
  const kvt_peer_t peer = side.Connect(producer.url());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        Pull pull(kBlocks, 64 << 10);
        ASSERT_EQ(pull.Submit(peer, MakeKeys(0, kBlocks)), KVT_OK) << LastError();
        if ((round + t) % 2 == 0) {
          ASSERT_EQ(kvt_node_cancel(side.node, pull.operation), KVT_OK) << LastError();
          const kvt_status_t status = pull.Wait(side.node);
          ASSERT_TRUE(status == KVT_ERR_CANCELLED || status == KVT_OK);
        } else {
          ASSERT_EQ(pull.Wait(side.node), KVT_OK) << LastError();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(FaultTest, AnotherProcessKeepsWhatIsPushed) {
  Side side({});
  OtherProcess other(GetParam() ? socket_.url() : "tcp://127.0.0.1:0", 1, 1);
  const kvt_peer_t peer = side.Connect(other.url());
  std::vector<uint8_t> frames;
  std::vector<uint64_t> lengths;
  for (uint32_t i = 100; i < 120; ++i) {
    const auto frame = MakeFrame(side.model, MakeKey(i), 1 + i % 64, i);
    frames.insert(frames.end(), frame.begin(), frame.end());
    lengths.push_back(frame.size());
  }
  std::vector<kvt_status_t> results(20, 1);
  uint64_t operation = 0;
  KVT_ASSERT_OK(kvt_peer_submit_push(peer, MakeKeys(100, 20).data(), 20, frames.data(), lengths.data(),
                                     results.data(), kLong, &operation));
  KVT_ASSERT_OK(kvt_node_wait(side.node, operation, kLong, nullptr));
  Pull pull(20, 1 << 18);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(100, 20)));
  KVT_ASSERT_OK(pull.Wait(side.node));
  for (uint32_t i = 0; i < 20; ++i)
    EXPECT_EQ(pull.Frame(i), MakeFrame(side.model, MakeKey(100 + i), 1 + (100 + i) % 64, 100 + i));
}

TEST(Bandwidth, IsKeptWithinAFewPerCent) {
  Side producer({.listen = "tcp://127.0.0.1:0?bandwidth=400Mbit"}), side({});
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    const auto frame = MakeFrame(side.model, MakeKey(i), kTokens, i);
    bytes += frame.size();
    producer.Put(MakeKey(i), frame);
  }
  const kvt_peer_t peer = side.Connect(producer.url());
  Pull pull(kBlocks, 1 << 20);
  const auto start = Clock::now();
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, kBlocks)));
  KVT_ASSERT_OK(pull.Wait(side.node));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  // Never faster; how much slower depends on the machine's load, which this test does not judge.
  EXPECT_GE(seconds, static_cast<double>(bytes) / 50e6 * 0.97);
}

}  // namespace
}  // namespace kvt_test
