// The parts of lib/net: places, messages, the token bucket and the loop.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <thread>

#include "net/address.h"
#include "net/loop.h"
#include "net/message.h"
#include "net/token_bucket.h"

namespace kvt::net {
namespace {

TEST(Place, ReadsHostsPortsAndOptions) {
  const auto v6 = Place::Parse("tcp://[::1]:80?bandwidth=1Gbit");
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, "80");
  EXPECT_EQ(v6->bytes_per_second, 125'000'000u);
  const auto address = Resolve(*v6);
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_TRUE(address->IsLoopback());
  EXPECT_TRUE(Resolve(*Place::Parse("tcp://localhost:1")).ok());
  EXPECT_TRUE(Resolve(*Place::Parse("tcp://127.1.2.3:1")).ok());
  EXPECT_FALSE(Resolve(*Place::Parse("tcp://128.0.0.1:1")).ok());
  EXPECT_TRUE(Resolve(*Place::Parse("tcp://128.0.0.1:1?insecure=1")).ok());
  EXPECT_TRUE(NeedsLookup(*Place::Parse("tcp://example.invalid:1")));
  EXPECT_FALSE(NeedsLookup(*Place::Parse("unix:/tmp/x")));
  EXPECT_FALSE(NeedsLookup(*Place::Parse("tcp://[fe80::1%lo]:1")));
  EXPECT_FALSE(NeedsLookup(*Place::Parse("tcp://localhost:1")));
  // Nobody is asked for a name here.
  const auto named = Resolve(*Place::Parse("tcp://example.invalid:1"));
  EXPECT_EQ(CodeOf(named.status()), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(named.status().message().find("example.invalid"), std::string::npos);
  EXPECT_FALSE(Place::Parse("unix:/" + std::string(200, 'x')).ok());
  const auto slashes = Place::Parse("unix:////tmp/x");
  ASSERT_TRUE(slashes.ok() && slashes->path == "//tmp/x");
  const auto again = Place::Parse(slashes->text);
  EXPECT_TRUE(again.ok() && again->path == slashes->path) << slashes->text;
  EXPECT_FALSE(Place::Parse("tcp://[::1:80").ok());
}

Message Sample() {
  Message message;
  message.type = MessageType::kPull;
  message.control = "control part";
  static const std::string payload = "some payload";
  message.payload.push_back({AsBytes(payload), nullptr});
  return message;
}

TEST(Message, ComesBackAsItWas) {
  const std::string head = EncodeHead(Sample());
  const auto header = DecodeHeader(AsBytes(head).subspan(0, kHeaderBytes), 12);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->type, MessageType::kPull);
  EXPECT_EQ(header->control_bytes, 12u);
  EXPECT_EQ(header->payload_bytes, 12u);
  EXPECT_TRUE(CheckHead(*header, AsBytes(head)).ok());
  EXPECT_EQ(CodeOf(DecodeHeader(AsBytes(head).subspan(0, kHeaderBytes), 11).status()), KVT_ERR_LIMIT);
}

TEST(Message, EveryFlippedBitIsFound) {
  const std::string good = EncodeHead(Sample());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string head = good;
    head[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    const auto header = DecodeHeader(AsBytes(head).subspan(0, kHeaderBytes), UINT64_MAX);
    EXPECT_FALSE(header.ok() && CheckHead(*header, AsBytes(head)).ok()) << bit;
  }
}

// Simulated time, with a thread that wakes up to 4 ms late.
TEST(TokenBucket, KeepsItsRateFrom50MbitTo10Gbit) {
  std::mt19937 random(7);
  for (const uint64_t rate : {6'250'000ull, 125'000'000ull, 1'250'000'000ull}) {
    auto now = TokenBucket::Time();
    TokenBucket bucket(rate, now);
    const auto start = now;
    uint64_t sent = 0;
    while (now - start < std::chrono::seconds(2)) {
      const uint64_t available = bucket.Available(now, 1 << 20);
      if (available == 0) {
        const auto when = bucket.When(1 << 20);
        ASSERT_GT(when, now);
        now = when + std::chrono::microseconds(random() % 2400);
        continue;
      }
      const uint64_t part = std::min<uint64_t>(available, 1 << 20);
      bucket.Spend(part);
      sent += part;
    }
    const double wanted = static_cast<double>(rate) * 2;
    EXPECT_NEAR(static_cast<double>(sent), wanted, wanted * 0.03) << rate;
  }
}

TEST(TokenBucket, DebtIsPaidBack) {
  auto now = TokenBucket::Time();
  TokenBucket bucket(1000, now);
  EXPECT_EQ(bucket.Available(now, 1), 0u);
  bucket.Spend(5000);
  EXPECT_GE(bucket.When(1) - now, std::chrono::seconds(5));
  EXPECT_FALSE(TokenBucket(0, now).limited());
  EXPECT_EQ(TokenBucket(0, now).Available(now, 1), UINT64_MAX);
}

// A thread that was held up must not run a timer that arms itself by now() over and over within one round.
TEST(Loop, ATimerThatArmsItselfWaitsForTheNextRound) {
  const auto loop = *Loop::Create();
  std::vector<Loop::Time> rounds;
  std::function<void()> again = [&] {
    if (!rounds.empty() && rounds.back() == loop->now()) return loop->Stop();
    rounds.push_back(loop->now());
    if (rounds.size() == 4) return loop->Stop();
    loop->At(loop->now() + std::chrono::milliseconds(1), again);
  };
  loop->Post([&] {
    loop->At(loop->now() + std::chrono::milliseconds(1), again);
    // Held up until several of its periods are over.
    while (Loop::Clock::now() < loop->now() + std::chrono::milliseconds(20)) std::this_thread::yield();
  });
  loop->Run();
  EXPECT_EQ(rounds.size(), 4u);
}

// Also what waited with the task that stops it: a connect must not begin on a node that has just ended.
TEST(Loop, NothingBeginsAfterStop) {
  const auto loop = *Loop::Create();
  bool ran = false;
  const auto held = std::make_shared<int>(1);
  loop->Post([&] {
    loop->At(loop->now(), [&] { ran = true; });
    loop->Stop();
  });
  loop->Post([&ran, held] { ran = true; });
  loop->Run();
  EXPECT_FALSE(ran);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Loop, RunsTasksTimersAndWatchesInTheirOrder) {
  const auto loop = *Loop::Create();
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Fd left(fds[0]), right(fds[1]);
  std::vector<std::string> order;
  Loop::WatchId watch = 0;
  loop->Post([&] {
    order.push_back("task");
    const auto now = Loop::Clock::now();
    loop->At(now + std::chrono::milliseconds(5), [&] {
      order.push_back("late");
      ASSERT_EQ(write(right.get(), "x", 1), 1);
    });
    loop->At(now + std::chrono::milliseconds(1), [&] { order.push_back("early"); });
    loop->Drop(loop->At(now, [&] { order.push_back("dropped"); }));
    watch = *loop->Watch(left.get(), EPOLLIN, [&](uint32_t events) {
      EXPECT_TRUE(events & EPOLLIN);
      order.push_back("event");
      loop->Forget(watch);
      loop->Forget(watch);
      loop->Post([&] { loop->Stop(); });
    });
  });
  std::thread thread([&] { loop->Run(); });
  thread.join();
  EXPECT_EQ(order, (std::vector<std::string>{"task", "early", "late", "event"}));
  // After the end tasks are dropped, with what they hold.
  auto held = std::make_shared<int>(1);
  loop->Post([held] { *held = 2; });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(LoopTest, GoesOnAfterWhatItsCallbacksThrow) {
  std::vector<kvt_status_t> failures;
  const auto loop = *Loop::Create([&](const Status& failed) { failures.push_back(CodeOf(failed)); });
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Fd left(fds[0]), right(fds[1]);
  ASSERT_EQ(write(right.get(), "x", 1), 1);
  loop->Post([] { throw std::bad_alloc(); });
  loop->At(Loop::Clock::now(), [] { throw std::runtime_error("timer"); });
  Loop::WatchId watch = 0;
  watch = *loop->Watch(left.get(), EPOLLIN, [&](uint32_t) {
    loop->Forget(watch);
    loop->Post([&] { loop->Post([&] { loop->Stop(); }); });
    throw 7;
  });
  loop->Run();
  std::sort(failures.begin(), failures.end());
  std::vector<kvt_status_t> expected = {KVT_ERR_OUT_OF_MEMORY, KVT_ERR_INTERNAL, KVT_ERR_INTERNAL};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(failures, expected);
}

}  // namespace
}  // namespace kvt::net
