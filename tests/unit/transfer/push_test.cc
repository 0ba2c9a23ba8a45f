// Pushes where one side misbehaves: whose memory is read until when, and whose is held.
#include "transfer/push.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <thread>

#include "transfer/wire.h"
#include "unit/transfer/fixture.h"

namespace kvt::transfer {
namespace {

std::string HelloHead(const Identity& identity) {
  net::Message hello;
  hello.type = net::MessageType::kHello;
  hello.control = HelloControl(identity);
  return net::EncodeHead(hello);
}

TEST(HostilePush, MemoryIsNotReadAfterTheEndOfAPushThatIsAnsweredTooSoon) {
  EndpointOptions options = ServerOptions();
  options.listen.clear();
  const auto client = *Endpoint::Create(MakeRuntime(1), options);
  uint16_t port = 0;
  const net::Fd listener(ListenRaw(&port));
  std::promise<void> ended;
  // Says that all is stored when it has seen that a push begins; reads it only after the client's end.
  auto late_bytes = std::async(std::launch::async, [&]() -> size_t {
    const net::Fd fd(accept(listener.get(), nullptr, nullptr));
    RawClient connection{net::Fd(dup(fd.get()))};
    net::Header header;
    std::string control;
    EXPECT_TRUE(connection.ReadMessage(&header, &control));
    connection.Send(HelloHead(options.identity));
    pollfd waiting = {fd.get(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 20'000), 1);
    connection.Send(net::EncodeHead(PushResultsMessage(1, 0, {KVT_OK})));
    ended.get_future().wait();
    size_t late = 0;
    std::vector<char> buffer(1 << 20);
    for (ssize_t got; (got = recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;)
      late += static_cast<size_t>(std::count(buffer.begin(), buffer.begin() + got, '\x5a'));
    return late;
  });
  const auto remote = client->Connect(absl::StrCat("tcp://127.0.0.1:", port), Soon());
  ASSERT_TRUE(remote.ok()) << remote.status();
  std::vector<uint8_t> memory(32 << 20, 0x11);
  kvt_status_t result = 77;
  const auto push = (*remote)->Submit(
      std::make_shared<PushOp>(std::vector<Key>{MakeKey(0)}, memory.data(),
                               std::vector<uint64_t>{memory.size()}, Results{&result, nullptr, 1}),
      Soon());
  ASSERT_TRUE(push.ok()) << push.status();
  const auto done = client->operations().Wait(*push, Soon());
  ASSERT_TRUE(done.ok()) << done.status();
  // It is the caller's again.
  std::fill(memory.begin(), memory.end(), 0x5a);
  EXPECT_EQ(done->status, KVT_ERR_CORRUPT);
  EXPECT_EQ(result, KVT_ERR_CORRUPT);
  ended.set_value();
  client->Shutdown();
  EXPECT_LT(late_bytes.get(), 4096u) << "the caller's memory was read after the end";
}

TEST(HostilePush, MemoryForAPushThatStopsHalfwayIsLetGo) {
  EndpointOptions options = ServerOptions();
  options.identity.stall_ms = 100;
  Server server(options);
  const uint64_t before = server.runtime()->memory_used();
  // Whatever the peer says of its own patience.
  Identity patient = server.identity();
  patient.stall_ms = 600'000;
  const Key key = MakeKey(0);
  const uint64_t lengths[] = {uint64_t{1} << 20};
  const std::string payload(lengths[0], 'x');
  net::Message push = PushMessage(1, 0, absl::MakeConstSpan(&key, 1), lengths);
  push.payload.push_back({AsBytes(payload), nullptr});
  RawClient peer(server.port());
  peer.Send(HelloHead(patient) + net::EncodeHead(push) + payload.substr(0, 1000));
  EXPECT_TRUE(peer.AtEnd()) << "the connection goes on";
  while (server.runtime()->memory_used() != before) std::this_thread::yield();
  server.ExpectGood();
}

class ThrowingStore : public FrameStore {
 public:
  explicit ThrowingStore(bool blocks) : blocks_(blocks) {}
  StatusOr<Pinned> Get(const Key&) override { throw std::bad_alloc(); }
  Status Put(const Key&, Pinned) override { throw std::bad_alloc(); }
  bool Blocks() const override { return blocks_; }

 private:
  const bool blocks_;
};

TEST(Store, WhatItThrowsIsTheFailureOfOneFrame) {
  for (const bool blocks : {false, true}) {
    const auto server = *Endpoint::Create(MakeRuntime(1), ServerOptions());
    ASSERT_TRUE(server->Serve(std::make_shared<ThrowingStore>(blocks)).ok());
    Client client;
    for (int round = 0; round < 2; ++round) {
      for (const kvt_status_t status : client.Pull(server->url(), {MakeKey(0), MakeKey(1)}, 1 << 16))
        EXPECT_EQ(status, KVT_ERR_OUT_OF_MEMORY);
    }
    EndpointOptions options = ServerOptions();
    options.listen.clear();
    const auto pusher = *Endpoint::Create(MakeRuntime(1), options);
    const auto remote = pusher->Connect(server->url(), Soon());
    ASSERT_TRUE(remote.ok()) << remote.status();
    const std::string frame = MakeFrame(0);
    kvt_status_t result = 77;
    const auto push = (*remote)->Submit(
        std::make_shared<PushOp>(std::vector<Key>{MakeKey(0)}, AsBytes(frame).data(),
                                 std::vector<uint64_t>{frame.size()}, Results{&result, nullptr, 1}),
        Soon());
    ASSERT_TRUE(push.ok()) << push.status();
    EXPECT_TRUE(pusher->operations().Wait(*push, Soon()).ok());
    EXPECT_EQ(result, KVT_ERR_OUT_OF_MEMORY);
    pusher->Shutdown();
    server->Shutdown();
  }
}

}  // namespace
}  // namespace kvt::transfer
