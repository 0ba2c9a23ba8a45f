/* Nodes move frames between processes and machines by key: pull, push, and layer-wise streams.
 *
 * Places: tcp://127.0.0.1:port, tcp://host:port?insecure=1 (anything but loopback needs it until TLS is
 * there), unix:/run/x.sock. ?bandwidth=1Gbit puts a token bucket on what this node sends (bit/s: Kbit, Mbit,
 * Gbit; byte/s: KB, MB, GB). A handshake compares wire version, model and namespace before any key is
 * answered. Every frame is checksummed by the sender's codec and checked by the receiver before it is
 * reported. */
#ifndef KVARTET_TRANSFER_H_
#define KVARTET_TRANSFER_H_

#include "base.h"
#include "cache.h"
#include "model.h"
#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_node_t;
typedef uint64_t kvt_peer_t;
typedef uint64_t kvt_stream_t;

#define KVT_WIRE_VERSION 1u

typedef struct kvt_node_options {
  uint32_t struct_size;
  uint32_t max_connections; /* accepted at once; default 64 */
  const char* listen;       /* URL to serve on; NULL: a client only */
  size_t listen_len;
  kvt_model_t model; /* whose KV this node speaks of */
  uint8_t namespace_digest[KVT_NAMESPACE_DIGEST_BYTES];
  uint64_t max_frame_bytes; /* a longer frame is refused; default 1 GiB */
  uint32_t stall_ms; /* no byte and no heartbeat for so long is STALLED; default 2,000; 100 to 600,000 */
  uint32_t reserved; /* 0 */
} kvt_node_options_t;

/* Fills defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_node_options_init(kvt_node_options_t* options, size_t struct_size);

/* Opens a node, and listens if it has a URL; tcp port 0 takes a free one (kvt_node_url says which).
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_ADDRESS_IN_USE; KVT_ERR_PERMISSION; KVT_ERR_UNSUPPORTED
 * (scheme); KVT_ERR_NOT_FOUND (the directory of a unix: path); KVT_ERR_LIMIT (open files, threads);
 * KVT_ERR_IO; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Owner: the caller. Threads: any. Blocks: no. Since:
 * 0.1. */
KVT_API kvt_status_t kvt_node_open(kvt_runtime_t runtime, const kvt_node_options_t* options,
                                   kvt_node_t* node);

/* The URL a peer can connect to. @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_NOT_FOUND (does not
 * listen); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_node_url(kvt_node_t node, char* buf, size_t cap, size_t* needed);

/* Serves a cache: peers pull its frames and push into it. One cache a node; after kvt_cache_destroy another
 * may take its place. When the cache is closed or destroyed first, peers get KVT_ERR_CLOSED. The node does
 * not keep the cache, nor the cache's runtime.
 * @return KVT_OK; KVT_ERR_ALREADY_EXISTS; KVT_ERR_CLOSED; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_node_serve(kvt_node_t node, kvt_cache_t cache);

/* Refuses new operations and connections, waits for those in flight.
 * @return KVT_OK; KVT_ERR_TIMEOUT; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any. Blocks: up to timeout_ms. Since: 0.1. */
KVT_API kvt_status_t kvt_node_close(kvt_node_t node, int64_t timeout_ms);

/* Cancels everything, closes connections, ends the node with its peers and streams; never waits for a peer;
 * when it returns the library touches no memory of the caller's. 0 and stale ids are accepted. Threads: any
 * but the runtime's. Blocks: no. Since: 0.1. */
KVT_API void kvt_node_destroy(kvt_node_t node);

/* Connects to another node and shakes hands. A host given by name is looked up in the hosts file and at the
 * name servers first.
 * @return KVT_OK; KVT_ERR_TIMEOUT (also: no name server answered); KVT_ERR_PEER_DEAD (refused, or closed in
 * the handshake; the name servers failed); KVT_ERR_STALLED;
 * KVT_ERR_VERSION (names both wire versions); KVT_ERR_MISMATCH (names model or namespace);
 * KVT_ERR_LIMIT (the other side has as many connections as it takes, or this process as many files);
 * KVT_ERR_CORRUPT (the other side does not speak this protocol); KVT_ERR_UNSUPPORTED (scheme);
 * KVT_ERR_INVALID_ARGUMENT (also: no such host); KVT_ERR_CLOSED (also: the node was destroyed meanwhile);
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Owner: the node; the
 * caller may end it earlier with kvt_peer_destroy. Threads: any. Blocks: up to timeout_ms. Since: 0.1. */
KVT_API kvt_status_t kvt_node_connect(kvt_node_t node, const char* url, size_t url_len, int64_t timeout_ms,
                                      kvt_peer_t* peer);

/* Closes the connection; operations on it end with KVT_ERR_CANCELLED. 0 and stale ids are accepted. Threads:
 * any but the runtime's. Blocks: no. Since: 0.1. */
KVT_API void kvt_peer_destroy(kvt_peer_t peer);

/* Pulls frames by key straight into the caller's memory: frame i goes to base + i x stride.
 * @param stride    bytes of a slot. @param lengths out, count: the frames' bytes.
 * @param results   out, count, each: KVT_OK (in place, every checksum verified); KVT_ERR_NOT_FOUND;
 * KVT_ERR_UNAVAILABLE (the peer serves no cache); KVT_ERR_BUFFER_TOO_SMALL (lengths[i] says how much);
 * KVT_ERR_CORRUPT; KVT_ERR_MISMATCH; KVT_ERR_IO or KVT_ERR_LIMIT (the peer's disk or memory);
 * KVT_ERR_PEER_DEAD; KVT_ERR_STALLED; KVT_ERR_TIMEOUT; KVT_ERR_CANCELLED; KVT_ERR_CLOSED (the peer's cache).
 * All memory is borrowed until the operation is done. Several pulls may be in flight.
 * @return KVT_OK: submitted; KVT_ERR_INVALID_ARGUMENT (also: a key that is all zero); KVT_ERR_CLOSED;
 * KVT_ERR_PEER_DEAD; KVT_ERR_LIMIT (2^20 keys or 256 requests outstanding on this peer, where a pull makes
 * one request for 16,384 keys; 65,536 operations of the node run or wait to be taken); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_peer_submit_pull(kvt_peer_t peer, const uint8_t* keys, size_t count, uint8_t* base,
                                          size_t stride, uint64_t* lengths, kvt_status_t* results,
                                          int64_t timeout_ms, uint64_t* operation);

/* Pushes frames into the cache that the peer serves. Parameters as kvt_cache_submit_put; results also
 * KVT_ERR_UNAVAILABLE (the peer serves no cache), KVT_ERR_CLOSED (that cache is closed), KVT_ERR_PEER_DEAD,
 * KVT_ERR_STALLED. @return as kvt_peer_submit_pull. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_peer_submit_push(kvt_peer_t peer, const uint8_t* keys, size_t count,
                                          const uint8_t* frames, const uint64_t* lengths,
                                          kvt_status_t* results, int64_t timeout_ms, uint64_t* operation);

/* Opens a stream under `key` on this node, to which frames (usually of consecutive layer ranges) are appended
 * while the prefill still runs. A peer may ask for the stream before it is opened and then waits for it
 * within its own deadline.
 * @return KVT_OK; KVT_ERR_ALREADY_EXISTS; KVT_ERR_CLOSED; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE;
 * KVT_ERR_INVALID_ARGUMENT. Owner: the caller until finish or abort; then the node, until kvt_stream_destroy.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_stream_open(kvt_node_t node, const uint8_t key[KVT_KEY_BYTES], kvt_stream_t* stream);

/* Appends one frame (copied). @return KVT_OK; KVT_ERR_CORRUPT (not a whole frame); KVT_ERR_VERSION;
 * KVT_ERR_MISMATCH (of another model or namespace than the node's); KVT_ERR_CLOSED;
 * KVT_ERR_LIMIT (memory limit of the runtime); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE;
 * KVT_ERR_INVALID_ARGUMENT. Threads: one at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_stream_append(kvt_stream_t stream, const uint8_t* frame, size_t frame_len);

/* Ends a stream: ok = 1 completes it, ok = 0 aborts it and every puller gets KVT_ERR_CANCELLED.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (ok above 1); KVT_ERR_CLOSED; KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: one at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_stream_finish(kvt_stream_t stream, uint8_t ok);

/* Forgets a stream; an unfinished one is aborted. 0 and stale ids are accepted. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API void kvt_stream_destroy(kvt_stream_t stream);

/* Pulls a stream: part i (one frame) is written at offsets[i] of base, 64-byte aligned relative to base. Each
 * part that is in place and checked gives a KVT_COMPLETION_PART with items_ok = parts so far; the operation
 * ends with KVT_COMPLETION_DONE.
 * @param offsets, lengths  out, part_cap entries, written before the part's completion.
 * @return as kvt_peer_submit_pull; the completion's status also KVT_ERR_BUFFER_TOO_SMALL (base or part_cap
 * full) and KVT_ERR_CANCELLED (the producer aborted). Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_peer_submit_pull_stream(kvt_peer_t peer, const uint8_t key[KVT_KEY_BYTES],
                                                 uint8_t* base, size_t cap, uint64_t* offsets,
                                                 uint64_t* lengths, size_t part_cap, int64_t timeout_ms,
                                                 uint64_t* operation);

/* As kvt_cache_poll, kvt_cache_wait, kvt_cache_cancel and kvt_cache_event_fd, for the operations of a node's
 * peers. A wait takes the operation's DONE completion; its PART completions, if not polled, are dropped with
 * it. Threads, blocking, since: as there. */
KVT_API kvt_status_t kvt_node_poll(kvt_node_t node, kvt_completion_t* completions, size_t cap, size_t* count);
KVT_API kvt_status_t kvt_node_wait(kvt_node_t node, uint64_t operation, int64_t timeout_ms,
                                   kvt_completion_t* completion);
KVT_API kvt_status_t kvt_node_cancel(kvt_node_t node, uint64_t operation);
KVT_API kvt_status_t kvt_node_event_fd(kvt_node_t node, int32_t* fd);

typedef struct kvt_node_stats_s {
  uint32_t struct_size;
  uint32_t connections;
  uint64_t bytes_sent, bytes_received; /* payload and framing */
  uint64_t frames_sent, frames_received;
  uint64_t checksums; /* verified */
  uint64_t refused_version, refused_model, refused_namespace,
      refused_limit; /* handshakes or messages refused, by reason */
  uint64_t corrupt;  /* frames or messages that failed a check */
} kvt_node_stats_t;

/* @param stats out; struct_size set by the caller. @return KVT_OK; KVT_ERR_INVALID_ARGUMENT;
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_node_stats(kvt_node_t node, kvt_node_stats_t* stats);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_TRANSFER_H_ */
