#include "kvartet/transfer.h"

#include "base/boundary.h"
#include "base/options.h"
#include "node/node.h"

namespace {

using kvt::Bytes;
using kvt::Deadline;
using kvt::Error;
using kvt::Key;
using kvt::Lookup;
using kvt::Node;
using kvt::NodeStream;
using kvt::OkStatus;
using kvt::Peer;
using kvt::Status;

kvt_node_options_t DefaultOptions() {
  kvt_node_options_t options = {};
  options.struct_size = sizeof options;
  options.max_connections = 64;
  options.max_frame_bytes = uint64_t{1} << 30;
  options.stall_ms = 2000;
  return options;
}

// `count`: how many items it is for; without any it may be NULL.
Status NotNull(const void* pointer, const char* name, size_t count = 1) {
  if (pointer != nullptr || count == 0) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat(name, " is NULL"));
}

Status CheckCount(size_t count) {
  if (count <= kvt::transfer::kMaxKeys) return OkStatus();
  return Error(KVT_ERR_INVALID_ARGUMENT,
               absl::StrCat("count is ", count, ", the most is ", kvt::transfer::kMaxKeys));
}

}  // namespace

extern "C" {

KVT_API void kvt_node_options_init(kvt_node_options_t* options, size_t struct_size) {
  kvt::VoidBoundary([&] { kvt::InitStruct(DefaultOptions(), options, struct_size); });
}

KVT_API kvt_status_t kvt_node_open(kvt_runtime_t runtime, const kvt_node_options_t* options,
                                   kvt_node_t* node) {
  return kvt::Boundary([&]() -> Status {
    KVT_RETURN_IF_ERROR(NotNull(node, "node"));
    kvt_node_options_t read = DefaultOptions();
    KVT_RETURN_IF_ERROR(kvt::ReadStruct(options, "kvt_node_options", &read));
    KVT_ASSIGN_OR_RETURN(auto host, Lookup<kvt::Runtime>(runtime));
    KVT_ASSIGN_OR_RETURN(const auto model, Lookup<const kvt::Model>(read.model));
    KVT_ASSIGN_OR_RETURN(auto opened, Node::Open(std::move(host), *model, read));
    *node = kvt::NewHandle(std::move(opened));
    return OkStatus();
  });
}

KVT_API kvt_status_t kvt_node_url(kvt_node_t node, char* buf, size_t cap, size_t* needed) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    KVT_ASSIGN_OR_RETURN(const std::string url, found->Url());
    return kvt::CopyOut(url.data(), url.size(), buf, cap, needed);
  });
}

KVT_API kvt_status_t kvt_node_serve(kvt_node_t node, kvt_cache_t cache) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    KVT_ASSIGN_OR_RETURN(const auto served, Lookup<kvt::Cache>(cache));
    return found->Serve(served);
  });
}

KVT_API kvt_status_t kvt_node_close(kvt_node_t node, int64_t timeout_ms) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    KVT_ASSIGN_OR_RETURN(const Deadline deadline, Deadline::FromTimeout(timeout_ms));
    return found->Close(deadline);
  });
}

KVT_API void kvt_node_destroy(kvt_node_t node) {
  kvt::VoidBoundary([&] {
    if (const auto taken = kvt::Take<Node>(node)) taken->Shutdown();
  });
}

KVT_API kvt_status_t kvt_node_connect(kvt_node_t node, const char* url, size_t url_len, int64_t timeout_ms,
                                      kvt_peer_t* peer) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const absl::string_view place, kvt::ReadText("url", url, url_len));
    KVT_RETURN_IF_ERROR(NotNull(peer, "peer"));
    KVT_ASSIGN_OR_RETURN(const Deadline deadline, Deadline::FromTimeout(timeout_ms));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    KVT_ASSIGN_OR_RETURN(*peer, found->Connect(place, deadline));
    return OkStatus();
  });
}

KVT_API void kvt_peer_destroy(kvt_peer_t peer) {
  kvt::VoidBoundary([&] {
    if (const auto taken = kvt::Take<Peer>(peer)) taken->Disconnect(peer);
  });
}

KVT_API kvt_status_t kvt_peer_submit_pull(kvt_peer_t peer, const uint8_t* keys, size_t count, uint8_t* base,
                                          size_t stride, uint64_t* lengths, kvt_status_t* results,
                                          int64_t timeout_ms, uint64_t* operation) {
  return kvt::Boundary([&]() -> Status {
    KVT_RETURN_IF_ERROR(NotNull(keys, "keys", count));
    KVT_RETURN_IF_ERROR(CheckCount(count));
    KVT_RETURN_IF_ERROR(NotNull(base, "base", count));
    KVT_RETURN_IF_ERROR(NotNull(lengths, "lengths", count));
    KVT_RETURN_IF_ERROR(NotNull(results, "results", count));
    KVT_RETURN_IF_ERROR(NotNull(operation, "operation"));
    if (stride > KVT_FRAME_BYTES_MAX)
      return Error(KVT_ERR_INVALID_ARGUMENT,
                   absl::StrCat("stride is ", stride, ", the most is ", KVT_FRAME_BYTES_MAX));
    KVT_ASSIGN_OR_RETURN(const Deadline deadline, Deadline::FromTimeout(timeout_ms));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Peer>(peer));
    KVT_ASSIGN_OR_RETURN(*operation, found->SubmitPull(Bytes(keys, count * KVT_KEY_BYTES), base, stride,
                                                       lengths, results, deadline));
    return OkStatus();
  });
}

KVT_API kvt_status_t kvt_peer_submit_push(kvt_peer_t peer, const uint8_t* keys, size_t count,
                                          const uint8_t* frames, const uint64_t* lengths,
                                          kvt_status_t* results, int64_t timeout_ms, uint64_t* operation) {
  return kvt::Boundary([&]() -> Status {
    KVT_RETURN_IF_ERROR(NotNull(keys, "keys", count));
    KVT_RETURN_IF_ERROR(CheckCount(count));
    KVT_RETURN_IF_ERROR(NotNull(frames, "frames", count));
    KVT_RETURN_IF_ERROR(NotNull(lengths, "lengths", count));
    KVT_RETURN_IF_ERROR(NotNull(results, "results", count));
    KVT_RETURN_IF_ERROR(NotNull(operation, "operation"));
    KVT_ASSIGN_OR_RETURN(const Deadline deadline, Deadline::FromTimeout(timeout_ms));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Peer>(peer));
    KVT_ASSIGN_OR_RETURN(*operation, found->SubmitPush(Bytes(keys, count * KVT_KEY_BYTES), frames, lengths,
                                                       results, deadline));
    return OkStatus();
  });
}

KVT_API kvt_status_t kvt_stream_open(kvt_node_t node, const uint8_t key[KVT_KEY_BYTES],
                                     kvt_stream_t* stream) {
  return kvt::Boundary([&]() -> Status {
    KVT_RETURN_IF_ERROR(NotNull(key, "key"));
    KVT_RETURN_IF_ERROR(NotNull(stream, "stream"));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    KVT_ASSIGN_OR_RETURN(*stream, found->OpenStream(Key::From(key)));
    return OkStatus();
  });
}

KVT_API kvt_status_t kvt_stream_append(kvt_stream_t stream, const uint8_t* frame, size_t frame_len) {
  return kvt::Boundary([&]() -> Status {
    KVT_RETURN_IF_ERROR(NotNull(frame, "frame"));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<NodeStream>(stream));
    return found->stream().Append(Bytes(frame, frame_len));
  });
}

KVT_API kvt_status_t kvt_stream_finish(kvt_stream_t stream, uint8_t ok) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<NodeStream>(stream));
    if (ok > 1) return kvt::Error(KVT_ERR_INVALID_ARGUMENT, absl::StrCat("ok is ", ok, ", must be 0 or 1"));
    return found->stream().Finish(ok != 0);
  });
}

KVT_API void kvt_stream_destroy(kvt_stream_t stream) {
  kvt::VoidBoundary([&] {
    if (const auto taken = kvt::Take<NodeStream>(stream)) taken->Forget(stream);
  });
}

KVT_API kvt_status_t kvt_peer_submit_pull_stream(kvt_peer_t peer, const uint8_t key[KVT_KEY_BYTES],
                                                 uint8_t* base, size_t cap, uint64_t* offsets,
                                                 uint64_t* lengths, size_t part_cap, int64_t timeout_ms,
                                                 uint64_t* operation) {
  return kvt::Boundary([&]() -> Status {
    KVT_RETURN_IF_ERROR(NotNull(key, "key"));
    KVT_RETURN_IF_ERROR(NotNull(base, "base"));
    KVT_RETURN_IF_ERROR(NotNull(offsets, "offsets"));
    KVT_RETURN_IF_ERROR(NotNull(lengths, "lengths"));
    KVT_RETURN_IF_ERROR(NotNull(operation, "operation"));
    KVT_ASSIGN_OR_RETURN(const Deadline deadline, Deadline::FromTimeout(timeout_ms));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Peer>(peer));
    KVT_ASSIGN_OR_RETURN(*operation, found->SubmitPullStream(Key::From(key), kvt::MutableBytes(base, cap),
                                                             offsets, lengths, part_cap, deadline));
    return OkStatus();
  });
}

KVT_API kvt_status_t kvt_node_poll(kvt_node_t node, kvt_completion_t* completions, size_t cap,
                                   size_t* count) {
  return kvt::Boundary([&]() -> Status {
    if (cap != 0) KVT_RETURN_IF_ERROR(NotNull(completions, "completions"));
    KVT_RETURN_IF_ERROR(NotNull(count, "count"));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    *count = found->operations().Poll(absl::MakeSpan(completions, cap));
    return OkStatus();
  });
}

KVT_API kvt_status_t kvt_node_wait(kvt_node_t node, uint64_t operation, int64_t timeout_ms,
                                   kvt_completion_t* completion) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    KVT_ASSIGN_OR_RETURN(const Deadline deadline, Deadline::FromTimeout(timeout_ms));
    return found->Wait(operation, deadline, completion);
  });
}

KVT_API kvt_status_t kvt_node_cancel(kvt_node_t node, uint64_t operation) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    return found->operations().Cancel(operation);
  });
}

KVT_API kvt_status_t kvt_node_event_fd(kvt_node_t node, int32_t* fd) {
  return kvt::Boundary([&]() -> Status {
    KVT_RETURN_IF_ERROR(NotNull(fd, "fd"));
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    *fd = found->operations().event_fd();
    return OkStatus();
  });
}

KVT_API kvt_status_t kvt_node_stats(kvt_node_t node, kvt_node_stats_t* stats) {
  return kvt::Boundary([&]() -> Status {
    KVT_ASSIGN_OR_RETURN(const auto found, Lookup<Node>(node));
    return kvt::WriteStruct(found->stats(), "kvt_node_stats", stats);
  });
}

}  // extern "C"
