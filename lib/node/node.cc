#include "node/node.h"

#include <algorithm>

#include "base/options.h"
#include "node/cache_store.h"
#include "transfer/pull.h"
#include "transfer/pull_stream.h"
#include "transfer/push.h"

namespace kvt {
namespace {

Status CheckOptions(const kvt_node_options_t& options) {
  const auto range = [](absl::string_view name, uint64_t value, uint64_t least, uint64_t most) {
    if (value >= least && value <= most) return OkStatus();
    return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("kvt_node_options.", name, " is ", value,
                                                        ", allowed are ", least, " to ", most));
  };
  KVT_RETURN_IF_ERROR(range("max_connections", options.max_connections, 1, 65536));
  KVT_RETURN_IF_ERROR(
      range("max_frame_bytes", options.max_frame_bytes, kFramePrefixBytes, KVT_FRAME_BYTES_MAX));
  KVT_RETURN_IF_ERROR(range("stall_ms", options.stall_ms, 100, 600'000));
  KVT_RETURN_IF_ERROR(range("reserved", options.reserved, 0, 0));
  if (options.listen == nullptr && options.listen_len != 0)
    return Error(KVT_ERR_INVALID_ARGUMENT,
                 absl::StrCat("kvt_node_options.listen is NULL but listen_len is ", options.listen_len));
  return OkStatus();
}

Status CheckKey(const Key& key, size_t i) {
  if (!key.IsNull()) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("key ", i, " is all zero, which names nothing"));
}

StatusOr<std::vector<Key>> ToKeys(Bytes bytes) {
  std::vector<Key> keys(bytes.size() / KVT_KEY_BYTES);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = Key::From(bytes.data() + i * KVT_KEY_BYTES);
    KVT_RETURN_IF_ERROR(CheckKey(keys[i], i));
  }
  return keys;
}

}  // namespace

StatusOr<std::shared_ptr<Node>> Node::Open(std::shared_ptr<Runtime> runtime, const Model& model,
                                           const kvt_node_options_t& options) {
  KVT_RETURN_IF_ERROR(CheckOptions(options));
  transfer::EndpointOptions endpoint;
  if (options.listen != nullptr) {
    KVT_ASSIGN_OR_RETURN(const absl::string_view listen,
                         ReadText("kvt_node_options.listen", options.listen, options.listen_len));
    endpoint.listen = std::string(listen);
    if (endpoint.listen.empty())
      return Error(KVT_ERR_INVALID_ARGUMENT, "kvt_node_options.listen is empty; NULL makes a client only");
  }
  endpoint.max_connections = options.max_connections;
  endpoint.identity.model = model.fingerprint();
  std::copy_n(options.namespace_digest, KVT_NAMESPACE_DIGEST_BYTES,
              endpoint.identity.namespace_digest.begin());
  endpoint.identity.stall_ms = options.stall_ms;
  endpoint.identity.max_frame_bytes = options.max_frame_bytes;
  KVT_ASSIGN_OR_RETURN(auto opened, transfer::Endpoint::Create(runtime, endpoint));
  return std::make_shared<Node>(std::move(runtime), std::move(opened));
}

StatusOr<std::string> Node::Url() const {
  if (endpoint_->url().empty()) return Error(KVT_ERR_NOT_FOUND, "the node does not listen");
  return endpoint_->url();
}

Status Node::Serve(const std::shared_ptr<Cache>& cache) {
  {
    MutexLock lock(&mu_);
    if (shut_down_) return Error(KVT_ERR_CLOSED, "destroy of the node has begun");
  }
  return endpoint_->Serve(std::make_shared<CacheStore>(cache));
}

template <typename T>
StatusOr<uint64_t> Node::Keep(std::shared_ptr<T> object, std::vector<uint64_t>* ids) {
  MutexLock lock(&mu_);
  if (shut_down_) return Error(KVT_ERR_CLOSED, "destroy of the node has begun");
  ids->push_back(NewHandle(std::move(object)));
  return ids->back();
}

void Node::Drop(uint64_t id) {
  MutexLock lock(&mu_);
  std::erase(peers_, id);
  std::erase(streams_, id);
}

StatusOr<uint64_t> Node::Connect(absl::string_view url, Deadline deadline) {
  KVT_ASSIGN_OR_RETURN(auto remote, endpoint_->Connect(url, deadline));
  return Keep(std::make_shared<Peer>(weak_from_this(), std::move(remote)), &peers_);
}

StatusOr<uint64_t> Node::OpenStream(const Key& key) {
  KVT_RETURN_IF_ERROR(CheckKey(key, 0));
  KVT_ASSIGN_OR_RETURN(auto stream, endpoint_->OpenStream(key));
  return Keep(std::make_shared<NodeStream>(weak_from_this(), std::move(stream)), &streams_);
}

Status Node::Wait(uint64_t operation, Deadline deadline, kvt_completion_t* completion) {
  KVT_ASSIGN_OR_RETURN(const kvt_completion_t done, operations().Wait(operation, deadline));
  if (completion != nullptr) *completion = done;
  if (done.status == KVT_OK) return OkStatus();
  return Error(done.status,
               absl::StrCat("operation ", operation, " ended with ", StatusName(done.status), ": ",
                            done.items_ok, " of ", done.items == 0 ? "?" : absl::StrCat(done.items),
                            " items are in place and checked"));
}

void Node::Shutdown() {
  std::vector<uint64_t> peers, streams;
  {
    MutexLock lock(&mu_);
    shut_down_ = true;
    peers.swap(peers_);
    streams.swap(streams_);
  }
  endpoint_->Shutdown();
  for (const uint64_t id : peers) Take<Peer>(id);
  for (const uint64_t id : streams) {
    if (const auto stream = Take<NodeStream>(id)) stream->stream().Forget();
  }
}

kvt_node_stats_t Node::stats() const {
  const transfer::Core& core = endpoint_->core();
  const transfer::Counters& counters = core.counters;
  kvt_node_stats_t stats = {};
  stats.struct_size = sizeof stats;
  stats.connections = counters.connections.load(std::memory_order_relaxed);
  stats.bytes_sent = core.traffic->bytes_sent.load(std::memory_order_relaxed);
  stats.bytes_received = core.traffic->bytes_received.load(std::memory_order_relaxed);
  stats.frames_sent = counters.frames_sent.load(std::memory_order_relaxed);
  stats.frames_received = counters.frames_received.load(std::memory_order_relaxed);
  stats.checksums = counters.checksums.load(std::memory_order_relaxed);
  stats.refused_version = counters.refused_version.load(std::memory_order_relaxed);
  stats.refused_model = counters.refused_model.load(std::memory_order_relaxed);
  stats.refused_namespace = counters.refused_namespace.load(std::memory_order_relaxed);
  stats.refused_limit = counters.refused_limit.load(std::memory_order_relaxed);
  stats.corrupt = counters.corrupt.load(std::memory_order_relaxed);
  return stats;
}

StatusOr<uint64_t> Peer::SubmitPull(Bytes keys, uint8_t* base, size_t stride, uint64_t* lengths,
                                    kvt_status_t* results, Deadline deadline) {
  KVT_ASSIGN_OR_RETURN(std::vector<Key> list, ToKeys(keys));
  const transfer::Results out{results, lengths, list.size()};
  return remote_->Submit(std::make_shared<transfer::PullOp>(std::move(list), base, stride, out), deadline);
}

StatusOr<uint64_t> Peer::SubmitPush(Bytes keys, const uint8_t* frames, const uint64_t* lengths,
                                    kvt_status_t* results, Deadline deadline) {
  KVT_ASSIGN_OR_RETURN(std::vector<Key> list, ToKeys(keys));
  std::vector<uint64_t> sizes(lengths, lengths + list.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 || sizes[i] > KVT_FRAME_BYTES_MAX)
      return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("lengths[", i, "] is ", sizes[i],
                                                          ", allowed are 1 to ", KVT_FRAME_BYTES_MAX));
  }
  const transfer::Results out{results, nullptr, list.size()};
  return remote_->Submit(std::make_shared<transfer::PushOp>(std::move(list), frames, std::move(sizes), out),
                         deadline);
}

StatusOr<uint64_t> Peer::SubmitPullStream(const Key& key, MutableBytes base, uint64_t* offsets,
                                          uint64_t* lengths, size_t part_cap, Deadline deadline) {
  KVT_RETURN_IF_ERROR(CheckKey(key, 0));
  return remote_->Submit(
      std::make_shared<transfer::PullStreamOp>(key, base.data(), base.size(), offsets, lengths, part_cap),
      deadline);
}

void Peer::Disconnect(uint64_t id) {
  if (const auto node = node_.lock()) node->Drop(id);
  remote_->Disconnect();
}

void NodeStream::Forget(uint64_t id) {
  if (const auto node = node_.lock()) node->Drop(id);
  stream_->Forget();
}

}  // namespace kvt
