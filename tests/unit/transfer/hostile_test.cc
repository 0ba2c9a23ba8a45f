// Peers that break the protocol: raw bytes against a node, on both sides of the connection.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <xxhash.h>

#include <atomic>
#include <random>
#include <thread>

#include "transfer/wire.h"
#include "unit/transfer/fixture.h"

namespace kvt::transfer {
namespace {

using net::MessageType;

std::string HelloHead(const Identity& identity) {
  net::Message hello;
  hello.type = MessageType::kHello;
  hello.control = HelloControl(identity);
  return net::EncodeHead(hello);
}

// Gives a head another field and its right checksum again.
template <typename T>
std::string With(std::string head, size_t offset, T value) {
  StoreLe<T>(&head[offset], value);
  const uint64_t seed = XXH3_64bits(head.data(), 24);
  StoreLe<uint64_t>(&head[24], XXH3_64bits_withSeed(head.data() + 32, head.size() - 32, seed));
  return head;
}

// The message with the vector of a field of its table copied to where elements of 8 bytes are not aligned.
net::Message Misaligned(net::Message message, uint16_t field, size_t bytes) {
  std::string& control = message.control;
  const auto at = [&](size_t place) { return LoadLe<uint32_t>(AsBytes(control).data() + place); };
  const size_t table = at(0), vtable = table - at(table);
  const size_t entry = table + (at(vtable + 4 + 2 * size_t{field}) & 0xffff), from = entry + at(entry);
  const std::string vector = control.substr(from, sizeof(uint32_t) + bytes);
  control.resize((control.size() + 7) / 8 * 8);
  StoreLe<uint32_t>(&control[entry], static_cast<uint32_t>(control.size() - entry));
  control += vector;
  return message;
}

TEST(HostileClient, IsToldWhyAndClosed) {
  EndpointOptions options = ServerOptions();
  options.identity.stall_ms = 200;
  Server server(options);
  const std::string hello = HelloHead(server.identity());
  const Key key = MakeKey(0);
  const std::string pull = net::EncodeHead(PullMessage(1, 4096, absl::MakeConstSpan(&key, 1)));
  const uint64_t lengths[] = {100};
  const net::Message pushed = PushMessage(1, 0, absl::MakeConstSpan(&key, 1), lengths);
  const std::string push = net::EncodeHead(pushed);
  Identity future = server.identity(), stranger = server.identity(), tenant = server.identity();
  future.version_min = 7;
  future.version_max = 9;
  stranger.model[3] ^= 1;
  tenant.namespace_digest[3] ^= 1;
  const struct {
    const char* name;
    std::string bytes;
    kvt_status_t code;
    const char* word;
  } cases[] = {
      {"garbage", std::string(100, 'x'), KVT_ERR_CORRUPT, "magic"},
      {"before the handshake", pull, KVT_ERR_CORRUPT, "before the handshake"},
      {"version", HelloHead(future), KVT_ERR_VERSION, "7 to 9"},
      {"model", HelloHead(stranger), KVT_ERR_MISMATCH, "model"},
      {"namespace", HelloHead(tenant), KVT_ERR_MISMATCH, "namespace"},
      {"control too long", With<uint32_t>(hello, 8, 1u << 30), KVT_ERR_LIMIT, "control_bytes"},
      {"payload too long", With<uint64_t>(hello, 16, uint64_t{1} << 60), KVT_ERR_LIMIT, "payload_bytes"},
      {"reserved", With<uint32_t>(hello, 12, 1), KVT_ERR_CORRUPT, "reserved"},
      {"checksum", std::string(hello).replace(40, 1, "~"), KVT_ERR_CORRUPT, "checksum"},
      {"hello twice", hello + hello, KVT_ERR_CORRUPT, "type 1"},
      {"unknown type", hello + With<uint16_t>(pull, 6, 99), KVT_ERR_CORRUPT, "type 99"},
      {"later version", hello + With<uint16_t>(pull, 4, 2), KVT_ERR_VERSION, "version is 2"},
      {"an answer", hello + net::EncodeHead(EndMessage(1, 0)), KVT_ERR_CORRUPT, "not expected"},
      {"request twice", hello + pull + pull, KVT_ERR_CORRUPT, "does not follow"},
      {"no keys", hello + net::EncodeHead(PullMessage(1, 64, {})), KVT_ERR_CORRUPT, "keys"},
      {"wrong table", hello + With<uint16_t>(net::EncodeHead(HeartbeatMessage()), 6, 10), KVT_ERR_CORRUPT,
       "Pull"},
      {"payload of a pull", hello + With<uint64_t>(pull, 16, 5) + "12345", KVT_ERR_CORRUPT, "payload"},
      {"push lengths", hello + With<uint64_t>(push, 16, 99) + std::string(99, 'x'), KVT_ERR_CORRUPT,
       "length"},
      {"unaligned lengths",
       hello + With<uint64_t>(net::EncodeHead(Misaligned(pushed, 3, sizeof lengths)), 16, 100) +
           std::string(100, 'x'),
       KVT_ERR_CORRUPT, "not aligned"},
  };
  for (const auto& c : cases) {
    RawClient client(server.port());
    client.Send(c.bytes);
    const Status goodbye = client.ReadGoodbye();
    EXPECT_EQ(CodeOf(goodbye), c.code) << c.name << ": " << goodbye;
    EXPECT_NE(goodbye.message().find(c.word), absl::string_view::npos) << c.name << ": " << goodbye;
    EXPECT_TRUE(client.AtEnd()) << c.name;
  }
  EXPECT_EQ(server.counters().refused_version.load(), 2u);
  EXPECT_EQ(server.counters().refused_model.load(), 1u);
  EXPECT_EQ(server.counters().refused_namespace.load(), 1u);
  EXPECT_EQ(server.counters().refused_limit.load(), 2u);
  // One that sends nothing, or half a message, is closed after the stall time.
  for (const std::string& bytes : {std::string(), hello.substr(0, 40)}) {
    RawClient client(server.port());
    client.Send(bytes);
    EXPECT_TRUE(client.AtEnd());
  }
  server.ExpectGood();
}

TEST(HostileClient, TooManyRequestsAndKeys) {
  Server server(ServerOptions());
  std::string bytes = HelloHead(server.identity());
  const Key key = MakeKey(3);
  for (uint64_t i = 1; i <= kMaxRequests + 1; ++i) bytes += net::EncodeHead(PullStreamMessage(i, key));
  RawClient client(server.port());
  client.Send(bytes);
  const Status goodbye = client.ReadGoodbye();
  EXPECT_EQ(CodeOf(goodbye), KVT_ERR_LIMIT) << goodbye;
  server.ExpectGood();
}

TEST(HostileClient, ThatDoesNotReadIsBounded) {
  Server server(ServerOptions());
  std::vector<Key> keys(kKeysPerMessage, MakeKey(0));
  std::string bytes = HelloHead(server.identity());
  for (uint64_t i = 1; i <= 16; ++i) bytes += net::EncodeHead(PullMessage(i, 1 << 20, keys));
  const uint64_t before = server.runtime()->memory_used();
  RawClient client(server.port());
  client.Send(bytes);
  // It asks for 262,144 frames and reads none; cancels are answered, so they have a limit of their own.
  std::string cancels;
  for (uint64_t i = 0; i < 70'000; ++i)
    cancels += net::EncodeHead(CancelMessage(MessageType::kCancel, i + 100));
  client.Send(cancels);
  while (server.counters().refused_limit.load() == 0) std::this_thread::yield();
  // The keys of its pulls are let go with it.
  while (server.runtime()->memory_used() != before) std::this_thread::yield();
  server.ExpectGood();
}

// A seeded walk over the neighbourhood of a good conversation: nothing may crash, hang or leak into the
// store.
TEST(HostileClient, SeededMutations) {
  EndpointOptions options = ServerOptions();
  options.identity.stall_ms = 100;
  options.identity.max_frame_bytes = 1 << 20;
  Server server(options);
  const Key keys[] = {MakeKey(0), MakeKey(1), MakeKey(50)};
  const std::string frame = MakeFrame(60);
  const uint64_t lengths[] = {frame.size()};
  const Key pushed = MakeKey(60);
  net::Message push = PushMessage(3, 0, absl::MakeConstSpan(&pushed, 1), lengths);
  push.payload.push_back({AsBytes(frame), nullptr});
  const std::vector<std::string> script = {HelloHead(server.identity()),
                                           net::EncodeHead(PullMessage(1, 1 << 16, keys)),
                                           net::EncodeHead(PullStreamMessage(2, MakeKey(7))),
                                           net::EncodeHead(push) + frame,
                                           net::EncodeHead(CancelMessage(MessageType::kCancel, 2)),
                                           net::EncodeHead(HeartbeatMessage())};
  std::mt19937 random(20260922);
  for (int round = 0; round < 400; ++round) {
    std::string bytes;
    for (const std::string& message : script) {
      // Mostly in order; sometimes twice, left out, or cut.
      const uint32_t dice = random() % 16;
      if (dice == 0) continue;
      std::string part = message;
      if (dice == 1) part += message;
      if (dice == 2) part.resize(random() % part.size());
      if (dice == 3) part[random() % part.size()] ^= static_cast<char>(1u << (random() % 8));
      // Past the checksum, into the tables themselves.
      if (dice == 4 && part.size() > 40)
        part = With<uint8_t>(part.substr(0, message.size() - (message == script[3] ? frame.size() : 0)),
                             32 + random() % 24, static_cast<uint8_t>(random()));
      if (dice == 5) part.insert(random() % part.size(), std::string(1 + random() % 70, '\x5a'));
      bytes += part;
    }
    RawClient client(server.port());
    client.Send(bytes);
    client.DrainBriefly();
  }
  server.ExpectGood();
  EXPECT_TRUE(server.StoreIsIntact());
}

// A server that answers wrongly. `make` builds the bytes that follow its Hello from the request it got.
class RawServer {
 public:
  explicit RawServer(const Identity& identity, std::function<std::string(uint64_t request)> make)
      : identity_(identity), make_(std::move(make)) {
    listener_ = ListenRaw(&port_);
    thread_ = std::thread([this] { Run(); });
  }
  ~RawServer() {
    stop_ = true;
    thread_.join();
    close(listener_);
  }
  std::string url() const { return absl::StrCat("tcp://127.0.0.1:", port_); }

 private:
  void Run() {
    while (!stop_) {
      pollfd waiting = {listener_, POLLIN, 0};
      if (poll(&waiting, 1, 5) != 1) continue;
      RawClient connection{net::Fd(accept(listener_, nullptr, nullptr))};
      std::string control;
      net::Header header;
      if (!connection.ReadMessage(&header, &control)) continue;
      connection.Send(HelloHead(identity_));
      if (!connection.ReadMessage(&header, &control)) continue;
      connection.Send(make_(1));
      while (connection.ReadMessage(&header, &control)) {
      }
    }
  }
  const Identity identity_;
  const std::function<std::string(uint64_t)> make_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::string FramesHead(uint64_t request, std::vector<wire::FrameItem> items, uint64_t payload) {
  return With<uint64_t>(net::EncodeHead(FramesMessage(request, items)), 16, payload);
}

TEST(HostileServer, NothingItSaysIsReportedAsGood) {
  const std::string frame = MakeFrame(0), other = MakeFrame(1);
  const uint64_t size = frame.size();
  const auto items = [&](uint32_t index, uint64_t length, int32_t status = 0) {
    return std::vector<wire::FrameItem>{wire::FrameItem(length, index, status)};
  };
  const struct {
    const char* name;
    std::string bytes;
    kvt_status_t code;
    kvt_status_t first = 1;  // of item 0, where it differs
  } cases[] = {
      {"unknown request", FramesHead(2, items(0, size), size) + frame, KVT_ERR_CORRUPT},
      {"index", FramesHead(1, items(9, size), size) + frame, KVT_ERR_CORRUPT},
      {"no items", FramesHead(1, {}, 0), KVT_ERR_CORRUPT},
      {"slot", FramesHead(1, items(0, 1 << 20), 1 << 20) + frame, KVT_ERR_CORRUPT},
      {"sum", FramesHead(1, items(0, size), size + 1) + frame + "x", KVT_ERR_CORRUPT},
      {"sum below", FramesHead(1, items(0, size), size - 1) + frame, KVT_ERR_CORRUPT},
      {"overflow",
       FramesHead(1, {wire::FrameItem(UINT64_MAX, 0, 0), wire::FrameItem(size + 1, 1, 0)}, size) + frame,
       KVT_ERR_CORRUPT},
      {"unaligned items",
       With<uint64_t>(
           net::EncodeHead(Misaligned(FramesMessage(1, items(0, size)), 1, sizeof(wire::FrameItem))), 16,
           size) +
           frame,
       KVT_ERR_CORRUPT},
      {"huge", FramesHead(1, items(0, uint64_t{1} << 50), uint64_t{1} << 50), KVT_ERR_LIMIT},
      {"twice in one",
       FramesHead(1, {wire::FrameItem(size, 0, 0), wire::FrameItem(size, 0, 0)}, 2 * size) + frame + frame,
       KVT_ERR_CORRUPT},
      {"twice", FramesHead(1, items(0, size), size) + frame + FramesHead(1, items(0, size), size) + frame,
       KVT_ERR_CORRUPT, KVT_OK},
      {"end without answers", net::EncodeHead(EndMessage(1, 0)), KVT_ERR_CORRUPT},
      {"end with a reason", net::EncodeHead(EndMessage(1, KVT_ERR_CLOSED)), KVT_ERR_CLOSED},
      {"end of nothing", net::EncodeHead(EndMessage(5, 0)), KVT_ERR_CORRUPT},
      {"push results", net::EncodeHead(PushResultsMessage(1, 0, {KVT_OK})), KVT_ERR_CORRUPT},
      {"a request", net::EncodeHead(PullStreamMessage(1, MakeKey(0))), KVT_ERR_CORRUPT},
      {"cancelled nothing", net::EncodeHead(CancelMessage(MessageType::kCancelled, 1)), KVT_ERR_CORRUPT},
      {"goodbye", net::EncodeHead(GoodbyeMessage(Error(KVT_ERR_INTERNAL, "tired"))), KVT_ERR_PEER_DEAD},
      {"another's frame",
       FramesHead(1, items(0, other.size()), other.size()) + other +
           net::EncodeHead(EndMessage(1, KVT_ERR_NOT_FOUND)),
       KVT_ERR_NOT_FOUND, KVT_ERR_MISMATCH},
      {"odd status", FramesHead(1, items(0, 0, 4711), 0) + net::EncodeHead(EndMessage(1, KVT_ERR_NOT_FOUND)),
       KVT_ERR_NOT_FOUND, KVT_ERR_IO},
  };
  for (const auto& c : cases) {
    Client client;
    RawServer server(client.identity(), [&](uint64_t) { return c.bytes; });
    const auto results = client.Pull(server.url(), {MakeKey(0), MakeKey(1)}, 1 << 16);
    EXPECT_EQ(results[0], c.first == 1 ? c.code : c.first) << c.name;
    EXPECT_EQ(results[1], c.code) << c.name;
  }
}

TEST(HostileServer, ItsHelloIsCheckedToo) {
  Client client;
  Identity stranger = client.identity(), future = client.identity();
  stranger.model[0] ^= 1;
  future.version_min = future.version_max = 3;
  for (const auto& [identity, code] :
       {std::pair(stranger, KVT_ERR_MISMATCH), std::pair(future, KVT_ERR_VERSION)}) {
    RawServer server(identity, [](uint64_t) { return std::string(); });
    EXPECT_EQ(client.Connect(server.url()), code);
  }
}

// One flipped byte anywhere in either direction: the frame is never reported as good.
TEST(Proxy, EveryFlippedByteIsFound) {
  EndpointOptions options = ServerOptions();
  options.identity.stall_ms = 100;
  Server server(options);
  for (const bool to_server : {false, true}) {
    size_t total = 0;
    {
      FlippingProxy proxy(server.port(), to_server, SIZE_MAX);
      Client client(100);
      EXPECT_EQ(client.Pull(proxy.url(), {MakeKey(0)}, 1 << 16)[0], KVT_OK);
      total = proxy.bytes();
    }
    ASSERT_GT(total, 100u);
    size_t found = 0;
    for (size_t at = 0; at < total; ++at) {
      FlippingProxy proxy(server.port(), to_server, at);
      Client client(100);
      const kvt_status_t status = client.Pull(proxy.url(), {MakeKey(0)}, 1 << 16)[0];
      EXPECT_NE(status, KVT_OK) << (to_server ? "to" : "from") << " the server, byte " << at << " of "
                                << total;
      found += status == KVT_ERR_CORRUPT;
    }
    EXPECT_GT(found, total / 2);
  }
  server.ExpectGood();
}

}  // namespace
}  // namespace kvt::transfer
