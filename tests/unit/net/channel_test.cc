// Two channels over a socket pair, on one loop that the test turns.
#include "net/channel.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

namespace kvt::net {
namespace {

// Collects what arrives; targets come from `places`.
class End : public Channel::Handler {
 public:
  Status OnMessage(const Header& header, Bytes control, Channel::Targets* targets) override {
    controls.push_back(std::string(AsText(control)));
    payload_bytes += header.payload_bytes;
    if (places) *targets = places(header.payload_bytes);
    if (on_message) on_message();
    return refuse;
  }
  Status OnTarget(size_t index) override {
    filled.push_back(index);
    if (on_target) on_target(index);
    return OkStatus();
  }
  void OnDrained() override { ++drained; }
  void OnBroken(Status reason) override {
    broken = reason;
    channel->CloseAfterFlush(std::move(reason));
  }
  void OnClosed(Status reason) override {
    closed = std::move(reason);
    if (on_closed) on_closed();
  }

  std::function<Channel::Targets(uint64_t)> places;
  std::function<void()> on_message, on_closed;
  std::function<void(size_t)> on_target;
  Status refuse, broken, closed;
  std::vector<std::string> controls;
  std::vector<size_t> filled;
  uint64_t payload_bytes = 0;
  int drained = 0;
  std::unique_ptr<Channel> channel;
};

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    for (int i = 0; i < 2; ++i) {
      Channel::Options options;
      options.max_payload_bytes = 64 << 20;
      options.traffic = std::make_shared<Traffic>();
      if (i == 0) options.bucket = bucket_;
      ends_[i]->channel = std::make_unique<Channel>(loop_.get(), Fd(fds[i]), ends_[i].get(), options);
      ASSERT_TRUE(ends_[i]->channel->Start(ends_[i]).ok());
    }
  }
  void TearDown() override {
    loop_->Post([this] {
      for (const auto& end : ends_) end->channel->Close(OkStatus());
      loop_->Stop();
    });
    loop_->Run();
  }
  // Turns the loop until `done` says so.
  void Until(std::function<bool()> done) {
    bool stop = false;
    std::function<void()> again = [&] {
      stop = done();
      if (!stop) loop_->At(Loop::Clock::now() + std::chrono::microseconds(200), again);
    };
    loop_->Post(again);
    while (!stop) loop_->Turn();
  }
  static Message Make(const std::string& control, std::vector<Bytes> payload, uint64_t tag = 0,
                      bool urgent = false) {
    Message message;
    message.type = MessageType::kPush;
    message.control = control;
    for (const Bytes& part : payload) message.payload.push_back({part, nullptr});
    message.tag = tag;
    message.urgent = urgent;
    return message;
  }
  static std::string Pattern(size_t size, uint32_t seed) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
    return bytes;
  }
  Channel& from() { return *ends_[0]->channel; }
  End& to() { return *ends_[1]; }

  std::shared_ptr<TokenBucket> bucket_;
  std::shared_ptr<Loop> loop_ = *Loop::Create();
  std::shared_ptr<End> ends_[2] = {std::make_shared<End>(), std::make_shared<End>()};
};

TEST_F(ChannelTest, PayloadGoesToItsPlacesWhateverTheirSizes) {
  const std::string all = Pattern(3'000'000, 1);
  std::string a(1, 0), b(999'999, 0), c(1'000'000, 0), d(7, 0);
  to().places = [&](uint64_t size) {
    EXPECT_EQ(size, all.size());
    const auto span = [](std::string& s) {
      return MutableBytes(reinterpret_cast<uint8_t*>(s.data()), s.size());
    };
    return Channel::Targets{
        MutableBytes(nullptr, 0),       span(a), MutableBytes(nullptr, 500'000), span(b), span(c),
        MutableBytes(nullptr, 499'993), span(d), MutableBytes(nullptr, 0)};
  };
  from().Send(Make("one", {AsBytes(all).subspan(0, 12345), AsBytes(all).subspan(12345)}));
  from().Flush();
  Until([&] { return to().filled.size() == 8; });
  EXPECT_EQ(to().filled, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(a, all.substr(0, 1));
  EXPECT_EQ(b, all.substr(500'001, 999'999));
  EXPECT_EQ(c, all.substr(1'500'000, 1'000'000));
  EXPECT_EQ(d, all.substr(2'999'993));
  // And the next message is understood.
  to().places = nullptr;
  from().Send(Make("two", {}));
  from().Flush();
  Until([&] { return to().controls.size() == 2; });
  EXPECT_EQ(to().controls[1], "two");
  EXPECT_EQ(from().queued_bytes(), 0u);
}

TEST_F(ChannelTest, UrgentMessagesGoFirstAndTagsAreTakenBack) {
  const std::string block = Pattern(1 << 20, 2);
  for (uint64_t i = 1; i <= 8; ++i) from().Send(Make(absl::StrCat("n", i), {AsBytes(block)}, i));
  from().Send(Make("urgent", {}, 0, true));
  from().TakeBack(3);
  from().TakeBack(3);
  from().TakeBack(99);
  from().Flush();
  // The block is this test's: all of it has to be sent before the test ends.
  Until([&] { return to().controls.size() == 8 && from().queued_bytes() == 0; });
  EXPECT_EQ(to().controls, (std::vector<std::string>{"urgent", "n1", "n2", "n4", "n5", "n6", "n7", "n8"}));
}

TEST_F(ChannelTest, WhatIsTakenBackIsNotReadAgain) {
  const size_t size = 8 << 20;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::string pattern = Pattern(size, 3);
  std::memcpy(memory, pattern.data(), size);
  std::string received(size, 0);
  to().places = [&](uint64_t) {
    return Channel::Targets{MutableBytes(reinterpret_cast<uint8_t*>(received.data()), size)};
  };
  const Bytes block(static_cast<uint8_t*>(memory), size);
  from().Send(Make("half", {block}, 7));
  from().Send(Make("gone", {block}, 7));
  from().Send(Make("kept", {}, 8));
  // The socket takes a part of the first.
  from().Flush();
  ASSERT_GT(from().queued_bytes(), 0u);
  from().TakeBack(7);
  munmap(memory, size);
  Until([&] { return to().controls.size() == 2 && to().filled.size() == 1; });
  EXPECT_EQ(to().controls, (std::vector<std::string>{"half", "kept"}));
  EXPECT_EQ(received, pattern);
}

TEST_F(ChannelTest, DroppedPayloadIsNotWritten) {
  const size_t size = 4 << 20;
  const std::string pattern = Pattern(size, 4);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  to().places = [&](uint64_t) {
    return Channel::Targets{MutableBytes(static_cast<uint8_t*>(memory), 1 << 20),
                            MutableBytes(static_cast<uint8_t*>(memory) + (1 << 20), 3 << 20)};
  };
  to().on_target = [&](size_t index) {
    if (index != 0) return;
    to().channel->DropPayload();
    munmap(memory, size);
  };
  from().Send(Make("one", {AsBytes(pattern)}));
  from().Send(Make("two", {}));
  from().Flush();
  Until([&] { return to().controls.size() == 2; });
  EXPECT_EQ(to().filled, (std::vector<size_t>{0, 1}));
}

TEST_F(ChannelTest, APauseHoldsWhatWasReadAlready) {
  for (int i = 0; i < 10; ++i) from().Send(Make(absl::StrCat(i), {}));
  to().on_message = [&] { to().channel->PauseReading(true); };
  from().Flush();
  Until([&] { return to().controls.size() == 1; });
  from().Send(Make("more", {}));
  from().Flush();
  to().on_message = nullptr;
  loop_->Post([&] { to().channel->PauseReading(false); });
  Until([&] { return to().controls.size() == 11; });
  EXPECT_EQ(to().controls.back(), "more");
}

TEST_F(ChannelTest, EndsAreTold) {
  to().refuse = Error(KVT_ERR_LIMIT, "no more");
  bool closed = false;
  ends_[0]->on_closed = [&] { closed = true; };
  from().Send(Make("one", {}));
  from().Flush();
  Until([&] { return closed; });
  EXPECT_EQ(CodeOf(to().broken), KVT_ERR_LIMIT);
  EXPECT_EQ(CodeOf(ends_[0]->closed), KVT_ERR_PEER_DEAD);
  EXPECT_FALSE(from().open());
}

class PacedChannelTest : public ChannelTest {
 protected:
  PacedChannelTest() { bucket_ = std::make_shared<TokenBucket>(20'000'000, Loop::Clock::now()); }
};

TEST_F(PacedChannelTest, IsNotFasterThanItsBucket) {
  const std::string pattern = Pattern(2'000'000, 5);
  std::string received(pattern.size(), 0);
  to().places = [&](uint64_t) {
    return Channel::Targets{MutableBytes(reinterpret_cast<uint8_t*>(received.data()), received.size())};
  };
  const auto start = Loop::Clock::now();
  from().Send(Make("one", {AsBytes(pattern)}));
  from().Flush();
  Until([&] { return to().filled.size() == 1; });
  // The bucket may have been full, 5 ms worth, when this began.
  EXPECT_GE(Loop::Clock::now() - start, std::chrono::milliseconds(94));
  EXPECT_EQ(received, pattern);
}

TEST_F(ChannelTest, WhatAHandlerThrowsClosesItsConnectionAlone) {
  to().on_message = [] { throw std::bad_alloc(); };
  from().Send(Make("one", {}));
  from().Flush();
  Until([&] { return !ends_[0]->channel->open() && !ends_[1]->channel->open(); });
  EXPECT_EQ(CodeOf(ends_[1]->closed), KVT_ERR_OUT_OF_MEMORY);
  EXPECT_EQ(CodeOf(ends_[0]->closed), KVT_ERR_PEER_DEAD);
}

}  // namespace
}  // namespace kvt::net
