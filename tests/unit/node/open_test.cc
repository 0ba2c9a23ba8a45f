// Opening, connecting and shaking hands: what is refused, and why.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <thread>

#include "unit/node/fixture.h"

namespace kvt_test {
namespace {

std::string PortOf(const std::string& url) { return url.substr(url.rfind(':') + 1); }

TEST(Open, ATakenPortIsNamed) {
  Side first({.listen = "tcp://127.0.0.1:0"});
  Side second({.listen = first.url()});
  EXPECT_EQ(second.opened, KVT_ERR_ADDRESS_IN_USE);
  // The text is of a later call by now; ask again.
  EXPECT_EQ(second.OpenNode({.listen = first.url()}), KVT_ERR_ADDRESS_IN_USE);
  EXPECT_NE(LastError().find(first.url()), std::string::npos) << LastError();
}

TEST(Open, ThePortIsFreeAgainAtOnce) {
  std::string url;
  {
    Side first({.listen = "tcp://127.0.0.1:0"});
    Side client({});
    client.Connect(first.url());
    url = first.url();
  }
  Side second({.listen = url});
  EXPECT_EQ(second.opened, KVT_OK) << LastError();
}

TEST(Open, AUnixSocketThatIsLeftOverIsReplaced) {
  SocketPath socket;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, socket.path.c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
  {
    Side first({.listen = socket.url()});
    EXPECT_EQ(first.opened, KVT_OK) << LastError();
    EXPECT_EQ(first.url(), socket.url());
    Side second({.listen = socket.url()});
    EXPECT_EQ(second.opened, KVT_ERR_ADDRESS_IN_USE);
  }
  EXPECT_FALSE(std::filesystem::exists(socket.path));
}

TEST(Open, AFileInTheWayStays) {
  SocketPath socket;
  FILE* file = fopen(socket.path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fclose(file);
  Side node({.listen = socket.url()});
  EXPECT_EQ(node.opened, KVT_ERR_ADDRESS_IN_USE);
  EXPECT_TRUE(std::filesystem::exists(socket.path));
}

TEST(Open, RefusesPlacesWithTheReason) {
  const struct {
    const char* url;
    kvt_status_t status;
    const char* word;
  } cases[] = {
      {"tcp://0.0.0.0:0", KVT_ERR_INVALID_ARGUMENT, "insecure=1"},
      {"tcp://[::]:0", KVT_ERR_INVALID_ARGUMENT, "insecure=1"},
      {"tcp://192.0.2.1:0", KVT_ERR_INVALID_ARGUMENT, "insecure=1"},
      {"tcp://example.invalid:1", KVT_ERR_INVALID_ARGUMENT, "numeric"},
      {"tcp://127.0.0.1", KVT_ERR_INVALID_ARGUMENT, "port"},
      {"tcp://127.0.0.1:65536", KVT_ERR_INVALID_ARGUMENT, "port"},
      {"tcp://:1", KVT_ERR_INVALID_ARGUMENT, "host"},
      {"tcp://127.0.0.1:0?insecure=2", KVT_ERR_INVALID_ARGUMENT, "insecure"},
      {"tcp://127.0.0.1:0?bandwidth=fast", KVT_ERR_INVALID_ARGUMENT, "bandwidth"},
      {"tcp://127.0.0.1:0?bandwidth=0", KVT_ERR_INVALID_ARGUMENT, "bandwidth"},
      {"tcp://127.0.0.1:0?tls=1", KVT_ERR_INVALID_ARGUMENT, "tls"},
      {"unix:", KVT_ERR_INVALID_ARGUMENT, "path"},
      {"unix:/nowhere/kvt-net.sock", KVT_ERR_NOT_FOUND, "/nowhere"},
      {"ucx://127.0.0.1:0", KVT_ERR_UNSUPPORTED, "ucx"},
  };
  Side client({});
  for (const auto& c : cases) {
    const kvt_node_t before = client.node;
    EXPECT_EQ(client.OpenNode({.listen = c.url}), c.status) << c.url << ": " << LastError();
    EXPECT_NE(LastError().find(c.word), std::string::npos) << c.url << ": " << LastError();
    EXPECT_EQ(client.node, before);
  }
  EXPECT_EQ(client.TryConnect("tcp://192.0.2.1:1"), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(LastError().find("insecure=1"), std::string::npos) << LastError();
}

TEST(Open, AnythingIsReachableWithInsecure) {
  Side server({.listen = "tcp://0.0.0.0:0?insecure=1"});
  ASSERT_EQ(server.opened, KVT_OK) << LastError();
  EXPECT_NE(server.url().find("insecure=1"), std::string::npos);
  Side client({});
  KVT_EXPECT_OK(client.TryConnect("tcp://localhost:" + PortOf(server.url())));
}

TEST(Open, ChecksItsOptions) {
  Side side({});
  kvt_node_options_t options;
  const auto expect = [&](const char* word) {
    kvt_node_t node = 17;
    EXPECT_EQ(kvt_node_open(side.runtime, &options, &node), KVT_ERR_INVALID_ARGUMENT);
    EXPECT_NE(LastError().find(word), std::string::npos) << LastError();
    EXPECT_EQ(node, 17u);
    kvt_node_options_init(&options, sizeof options);
    options.model = side.model;
  };
  kvt_node_options_init(&options, sizeof options);
  options.model = side.model;
  options.max_connections = 0;
  expect("max_connections is 0");
  options.stall_ms = 99;
  expect("stall_ms is 99");
  options.max_frame_bytes = 3;
  expect("max_frame_bytes is 3");
  options.reserved = 4;
  expect("reserved is 4");
  options.listen_len = 4;
  expect("listen is NULL");
  options.model = 0;
  kvt_node_t node = 0;
  EXPECT_EQ(kvt_node_open(side.runtime, &options, &node), KVT_ERR_STALE_HANDLE);
  char text[8];
  size_t size = 0;
  EXPECT_EQ(kvt_node_url(side.node, text, sizeof text, &size), KVT_ERR_NOT_FOUND);
  EXPECT_EQ(kvt_node_serve(side.node, side.cache), KVT_ERR_ALREADY_EXISTS);
}

TEST(Handshake, AnotherModelIsNamedByBothSides) {
  Side server({.listen = "tcp://127.0.0.1:0"}), client({.model_id = "model-b"});
  uint8_t own[KVT_FINGERPRINT_BYTES];
  KVT_ASSERT_OK(kvt_model_fingerprint(client.model, own));
  char first[3];
  snprintf(first, sizeof first, "%02x", own[0]);
  EXPECT_EQ(client.TryConnect(server.url()), KVT_ERR_MISMATCH);
  const std::string text = LastError();
  EXPECT_NE(text.find("model"), std::string::npos) << text;
  EXPECT_NE(text.find(first), std::string::npos) << text;
  EXPECT_EQ(server.Stats().refused_model, 1u);
  EXPECT_EQ(server.Stats().refused_namespace, 0u);
}

TEST(Handshake, AnotherNamespaceIsNamed) {
  Side server({.listen = "tcp://127.0.0.1:0"}), client({.ns = 0xab});
  EXPECT_EQ(client.TryConnect(server.url()), KVT_ERR_MISMATCH);
  EXPECT_NE(LastError().find("namespace"), std::string::npos) << LastError();
  EXPECT_NE(LastError().find("abababab"), std::string::npos) << LastError();
  EXPECT_NE(LastError().find("00000000"), std::string::npos) << LastError();
  EXPECT_EQ(server.Stats().refused_namespace, 1u);
}

TEST(Handshake, NobodyThere) {
  std::string url;
  { url = Side({.listen = "tcp://127.0.0.1:0"}).url(); }
  Side client({});
  EXPECT_EQ(client.TryConnect(url), KVT_ERR_PEER_DEAD);
  EXPECT_EQ(client.TryConnect("unix:/tmp/kvt-net-nobody"), KVT_ERR_PEER_DEAD);
}

TEST(Handshake, AListenerThatSaysNothing) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(fd, 4), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string url = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  Side client({.stall_ms = 150});
  EXPECT_EQ(client.TryConnect(url, 20), KVT_ERR_TIMEOUT);
  EXPECT_EQ(client.TryConnect(url), KVT_ERR_STALLED);
  EXPECT_EQ(client.Stats().connections, 0u);
  close(fd);
}

TEST(Handshake, TooManyConnections) {
  Side server({.listen = "tcp://127.0.0.1:0", .max_connections = 2}), client({});
  const kvt_peer_t first = client.Connect(server.url());
  client.Connect(server.url());
  EXPECT_EQ(client.TryConnect(server.url()), KVT_ERR_LIMIT);
  EXPECT_NE(LastError().find("max_connections is 2"), std::string::npos) << LastError();
  EXPECT_EQ(server.Stats().refused_limit, 1u);
  kvt_peer_destroy(first);
  // The server learns of the end on its own time.
  kvt_status_t status = KVT_ERR_LIMIT;
  while (status == KVT_ERR_LIMIT) status = client.TryConnect(server.url());
  EXPECT_EQ(status, KVT_OK) << LastError();
}

TEST(Close, WaitsForWhatPeersHaveAskedFor) {
  Side server({.listen = "tcp://127.0.0.1:0?bandwidth=20MB"}), client({});
  for (uint32_t i = 0; i < 8; ++i) server.Put(MakeKey(i), MakeFrame(server.model, MakeKey(i), 512, i));
  const kvt_peer_t peer = client.Connect(server.url());
  Pull pull(8, 2 << 20);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKeys(0, 8)));
  while (client.Stats().bytes_received < (1 << 20)) std::this_thread::yield();
  EXPECT_EQ(kvt_node_close(server.node, 20), KVT_ERR_TIMEOUT);
  KVT_EXPECT_OK(kvt_node_close(server.node, kLong));
  KVT_EXPECT_OK(pull.Wait(client.node));
  EXPECT_EQ(kvt_node_close(client.node, -1), KVT_ERR_INVALID_ARGUMENT);
}

TEST(Serve, ADestroyedCacheLetsItsRuntimeGoAndAnotherIsServed) {
  Side server({.listen = "tcp://127.0.0.1:0", .serve = false}), client({});
  kvt_runtime_t runtime = 0;
  KVT_ASSERT_OK(kvt_runtime_create(nullptr, &runtime));
  kvt_cache_t cache = 0;
  KVT_ASSERT_OK(kvt_cache_open(runtime, "mem:", 4, &cache));
  KVT_ASSERT_OK(kvt_node_serve(server.node, cache));
  EXPECT_EQ(kvt_node_serve(server.node, cache), KVT_ERR_ALREADY_EXISTS);
  kvt_cache_destroy(cache);
  KVT_EXPECT_OK(kvt_runtime_close(runtime, kLong));
  kvt_runtime_destroy(runtime);
  const kvt_peer_t peer = client.Connect(server.url());
  Pull gone(1, 1 << 16);
  KVT_ASSERT_OK(gone.Submit(peer, MakeKey(0)));
  EXPECT_EQ(gone.Wait(client.node), KVT_ERR_CLOSED);
  KVT_ASSERT_OK(kvt_cache_open(server.runtime, "mem:", 4, &server.cache));
  KVT_ASSERT_OK(kvt_node_serve(server.node, server.cache));
  server.Put(MakeKey(0), MakeFrame(server.model, MakeKey(0), 16, 0));
  Pull pull(1, 1 << 16);
  KVT_ASSERT_OK(pull.Submit(peer, MakeKey(0)));
  KVT_EXPECT_OK(pull.Wait(client.node));
}

TEST(Submit, RefusesTheKeyThatNamesNothing) {
  Side server({.listen = "tcp://127.0.0.1:0"}), client({});
  const kvt_peer_t peer = client.Connect(server.url());
  std::vector<uint8_t> keys = MakeKeys(0, 2);
  std::fill(keys.begin() + KVT_KEY_BYTES, keys.end(), 0);
  Pull pull(2, 1 << 16);
  EXPECT_EQ(pull.Submit(peer, keys), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(LastError().find("key 1"), std::string::npos) << LastError();
  const uint8_t frames[2] = {};
  const uint64_t lengths[2] = {1, 1};
  kvt_status_t results[2] = {};
  uint64_t operation = 0;
  EXPECT_EQ(kvt_peer_submit_push(peer, keys.data(), 2, frames, lengths, results, kLong, &operation),
            KVT_ERR_INVALID_ARGUMENT);
  uint64_t offset = 0, length = 0;
  uint8_t base[64];
  EXPECT_EQ(kvt_peer_submit_pull_stream(peer, keys.data() + KVT_KEY_BYTES, base, sizeof base, &offset,
                                        &length, 1, kLong, &operation),
            KVT_ERR_INVALID_ARGUMENT);
  kvt_stream_t stream = 0;
  EXPECT_EQ(kvt_stream_open(server.node, keys.data() + KVT_KEY_BYTES, &stream), KVT_ERR_INVALID_ARGUMENT);
}

TEST(Close, RefusesNewWorkAndEnds) {
  Side server({.listen = "tcp://127.0.0.1:0"}), client({});
  const kvt_peer_t peer = client.Connect(server.url());
  KVT_EXPECT_OK(kvt_node_close(client.node, kLong));
  Pull pull(1, 4096);
  EXPECT_EQ(pull.Submit(peer, MakeKey(0)), KVT_ERR_CLOSED);
  EXPECT_EQ(client.TryConnect(server.url()), KVT_ERR_CLOSED);
  kvt_stream_t stream = 0;
  EXPECT_EQ(kvt_stream_open(client.node, MakeKey(0).data(), &stream), KVT_ERR_CLOSED);
  KVT_EXPECT_OK(kvt_node_close(server.node, kLong));
  Side other({});
  EXPECT_EQ(other.TryConnect(server.url()), KVT_ERR_PEER_DEAD);
}

}  // namespace
}  // namespace kvt_test
