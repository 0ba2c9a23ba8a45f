// Endpoint: a node's side of the network: its loop's thread, its listener, its connections and operations.
//
// Thread-safe. Shutdown ends everything and joins the loop's thread; after it every call gives KVT_ERR_CLOSED
// or does nothing.
#ifndef KVARTET_LIB_TRANSFER_ENDPOINT_H_
#define KVARTET_LIB_TRANSFER_ENDPOINT_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/socket.h"
#include "transfer/core.h"
#include "transfer/remote.h"
#include "transfer/served.h"
#include "transfer/streams.h"

namespace kvt::transfer {

struct EndpointOptions {
  std::string listen;  // empty: a client only
  uint32_t max_connections = 64;
  std::string name_servers;  // "address:port,..."; empty: those of the system
  Identity identity;
};

class Endpoint {
 public:
  static StatusOr<std::shared_ptr<Endpoint>> Create(std::shared_ptr<Runtime> runtime,
                                                    const EndpointOptions& options);
  ~Endpoint() { Shutdown(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Empty for a client only.
  const std::string& url() const { return url_; }
  Status Serve(std::shared_ptr<FrameStore> store) { return shelf_->Serve(std::move(store)); }
  StatusOr<std::shared_ptr<Remote>> Connect(absl::string_view url, Deadline deadline);
  StatusOr<std::shared_ptr<Stream>> OpenStream(const Key& key);
  Operations& operations() { return *core_->operations; }
  const Core& core() const { return *core_; }

  // Refuses new operations and connections, and waits until those in flight have ended.
  Status Close(Deadline deadline) ABSL_LOCKS_EXCLUDED(mu_);
  void Shutdown() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Endpoint(std::shared_ptr<Core> core, const EndpointOptions& options, net::Listener listener,
           std::shared_ptr<net::TokenBucket> bucket);
  Status Run();
  void OnAccept();
  void StopListening();
  void Prune();
  void OnStreams();
  bool closed() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    return closed_;
  }

  const std::shared_ptr<Core> core_;
  const uint32_t max_connections_;
  const std::string name_servers_;
  const std::string url_;
  const std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
  std::shared_ptr<Streams> streams_;
  std::thread thread_;

  // The loop's thread.
  net::Listener listener_;
  net::Loop::WatchId listen_watch_ = 0;
  net::Loop::TimerId listen_again_ = 0;
  const std::shared_ptr<net::TokenBucket> bucket_;
  std::vector<std::shared_ptr<Served>> served_;
  std::vector<std::shared_ptr<Remote>> remotes_;

  mutable Mutex mu_;
  CondVar done_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_ENDPOINT_H_
