// What the tests of hostile peers share: a node over a store in memory, clients, raw sockets and a proxy.
#ifndef KVARTET_TESTS_UNIT_TRANSFER_FIXTURE_H_
#define KVARTET_TESTS_UNIT_TRANSFER_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/fd.h"
#include "transfer/endpoint.h"
#include "transfer/pull.h"
#include "unit/cache/fixture.h"

namespace kvt::transfer {

// A store that takes only frames that are right, and says so.
class MapStore : public FrameStore {
 public:
  StatusOr<Pinned> Get(const Key& key) override ABSL_LOCKS_EXCLUDED(mu_);
  Status Put(const Key& key, Pinned frame) override ABSL_LOCKS_EXCLUDED(mu_);
  bool Blocks() const override { return false; }
  bool intact() const { return intact_; }

 private:
  Mutex mu_;
  absl::flat_hash_map<Key, std::shared_ptr<const std::string>> frames_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> intact_{true};
};

// An endpoint on loopback whose identity fits MakeFrame's.
EndpointOptions ServerOptions();

// Serves MakeFrame(0) to MakeFrame(7).
class Server {
 public:
  explicit Server(const EndpointOptions& options);
  ~Server() { endpoint_->Shutdown(); }
  uint16_t port() const;
  const Identity& identity() const { return endpoint_->core().identity; }
  const Counters& counters() const { return endpoint_->core().counters; }
  Runtime* runtime() const { return runtime_.get(); }
  bool StoreIsIntact() const { return store_->intact(); }
  // An honest client still gets what it asks for.
  void ExpectGood();

 private:
  std::shared_ptr<Runtime> runtime_ = MakeRuntime();
  std::shared_ptr<MapStore> store_ = std::make_shared<MapStore>();
  std::shared_ptr<Endpoint> endpoint_;
};

// An honest node that pulls.
class Client {
 public:
  explicit Client(uint32_t stall_ms = 2000);
  ~Client() { endpoint_->Shutdown(); }
  const Identity& identity() const { return endpoint_->core().identity; }
  kvt_status_t Connect(const std::string& url);
  // A status per key; that of the connection when there is none. Checks that what is OK is right.
  std::vector<kvt_status_t> Pull(const std::string& url, const std::vector<Key>& keys, size_t stride);

 private:
  std::shared_ptr<Runtime> runtime_ = MakeRuntime(1);
  std::shared_ptr<Endpoint> endpoint_;
};

int ListenRaw(uint16_t* port);
net::Fd ConnectRaw(uint16_t port);

// A socket without the protocol's manners. Every wait ends after seconds at most.
class RawClient {
 public:
  explicit RawClient(uint16_t port) : fd_(ConnectRaw(port)) {}
  explicit RawClient(net::Fd fd) : fd_(std::move(fd)) {}
  // Stops when the other side has closed.
  void Send(const std::string& bytes);
  // The next message's header and control part; false at the end.
  bool ReadMessage(net::Header* header, std::string* control);
  // Skips messages up to a Goodbye, and what it says.
  Status ReadGoodbye();
  // Reads on: whether the other side closes.
  bool AtEnd();
  // Reads what comes at once and lets go.
  void DrainBriefly();

 private:
  bool ReadExactly(void* to, size_t size);
  net::Fd fd_;
};

// Forwards one connection at a time and flips bit 0x10 of byte `at` of one direction.
class FlippingProxy {
 public:
  FlippingProxy(uint16_t port, bool to_server, size_t at);
  ~FlippingProxy();
  std::string url() const { return absl::StrCat("tcp://127.0.0.1:", port_); }
  // Bytes forwarded in the direction that is flipped.
  size_t bytes() const { return bytes_; }

 private:
  void Run();
  const uint16_t server_port_;
  const bool to_server_;
  const size_t at_;
  std::atomic<size_t> bytes_{0};
  std::atomic<bool> stop_{false};
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace kvt::transfer

#endif  // KVARTET_TESTS_UNIT_TRANSFER_FIXTURE_H_
