// Node: what the C ABI calls a node, its peers and its streams: the endpoint, and the cache that it serves.
//
// Thread-safe. Shutdown cancels everything and never waits for a peer; when it returns the node touches none
// of the caller's memory.
#ifndef KVARTET_LIB_NODE_NODE_H_
#define KVARTET_LIB_NODE_NODE_H_

#include <memory>
#include <vector>

#include "base/handles.h"
#include "base/runtime.h"
#include "cache/cache.h"
#include "model/model.h"
#include "transfer/endpoint.h"

namespace kvt {

class Peer;
class NodeStream;

class Node : public std::enable_shared_from_this<Node> {
 public:
  // `options` has been through ReadStruct.
  static StatusOr<std::shared_ptr<Node>> Open(std::shared_ptr<Runtime> runtime, const Model& model,
                                              const kvt_node_options_t& options);
  Node(std::shared_ptr<Runtime> runtime, std::shared_ptr<transfer::Endpoint> endpoint)
      : runtime_(std::move(runtime)), endpoint_(std::move(endpoint)) {}

  // KVT_ERR_NOT_FOUND when the node does not listen.
  StatusOr<std::string> Url() const;
  Status Serve(const std::shared_ptr<Cache>& cache);
  // Handles; the node ends them at the latest.
  StatusOr<uint64_t> Connect(absl::string_view url, Deadline deadline) ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<uint64_t> OpenStream(const Key& key) ABSL_LOCKS_EXCLUDED(mu_);

  Operations& operations() { return endpoint_->operations(); }
  // Takes an operation's completion; its status with a text that says how far it came.
  Status Wait(uint64_t operation, Deadline deadline, kvt_completion_t* completion);
  Status Close(Deadline deadline) { return endpoint_->Close(deadline); }
  void Shutdown() ABSL_LOCKS_EXCLUDED(mu_);
  kvt_node_stats_t stats() const;

 private:
  friend class Peer;
  friend class NodeStream;
  // A handle of an object that ends with the node.
  template <typename T>
  StatusOr<uint64_t> Keep(std::shared_ptr<T> object, std::vector<uint64_t>* ids) ABSL_LOCKS_EXCLUDED(mu_);
  void Drop(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);

  const RuntimeChild runtime_;
  const std::shared_ptr<transfer::Endpoint> endpoint_;
  Mutex mu_;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<uint64_t> peers_ ABSL_GUARDED_BY(mu_), streams_ ABSL_GUARDED_BY(mu_);
};

// A connection to another node. Thread-safe.
class Peer {
 public:
  Peer(std::weak_ptr<Node> node, std::shared_ptr<transfer::Remote> remote)
      : node_(std::move(node)), remote_(std::move(remote)) {}

  // As the submits of the C ABI; pointers are borrowed until the operation is done.
  StatusOr<uint64_t> SubmitPull(Bytes keys, uint8_t* base, size_t stride, uint64_t* lengths,
                                kvt_status_t* results, Deadline deadline);
  StatusOr<uint64_t> SubmitPush(Bytes keys, const uint8_t* frames, const uint64_t* lengths,
                                kvt_status_t* results, Deadline deadline);
  StatusOr<uint64_t> SubmitPullStream(const Key& key, MutableBytes base, uint64_t* offsets, uint64_t* lengths,
                                      size_t part_cap, Deadline deadline);
  // Ends the peer, whose handle `id` has been taken.
  void Disconnect(uint64_t id);

 private:
  const std::weak_ptr<Node> node_;
  const std::shared_ptr<transfer::Remote> remote_;
};

// A stream that the host produces. Thread-safe.
class NodeStream {
 public:
  NodeStream(std::weak_ptr<Node> node, std::shared_ptr<transfer::Stream> stream)
      : node_(std::move(node)), stream_(std::move(stream)) {}
  transfer::Stream& stream() const { return *stream_; }
  void Forget(uint64_t id);

 private:
  const std::weak_ptr<Node> node_;
  const std::shared_ptr<transfer::Stream> stream_;
};

template <>
struct HandleTraits<Node> {
  static constexpr HandleType kType = HandleType::kNode;
};
template <>
struct HandleTraits<Peer> {
  static constexpr HandleType kType = HandleType::kPeer;
};
template <>
struct HandleTraits<NodeStream> {
  static constexpr HandleType kType = HandleType::kStream;
};

}  // namespace kvt

#endif  // KVARTET_LIB_NODE_NODE_H_
