/* Nodes, peers and streams. */
#include "flat_internal.h"

static const flat_field_t kNodeFields[] = {
    FLAT_FIELD(kvt_node_options_t, max_connections, FLAT_U32),
    FLAT_FIELD(kvt_node_options_t, max_frame_bytes, FLAT_U64),
    FLAT_FIELD(kvt_node_options_t, stall_ms, FLAT_U32),
};

int64_t kvtf_node_open(int64_t runtime, int64_t model, const uint8_t* options, size_t options_len,
                       const uint8_t* url, size_t url_len, const uint8_t* digest, size_t digest_len,
                       uint8_t* err, size_t err_cap) {
  kvt_node_options_t values;
  kvt_node_options_init(&values, sizeof values);
  int64_t result =
      FlatReadRecord("node", kNodeFields, FLAT_COUNT(kNodeFields), options, options_len, &values, FLAT_ERROR);
  if (result == 0) {
    result = FlatFixed("digest", digest, digest_len, sizeof values.namespace_digest, values.namespace_digest,
                       FLAT_ERROR);
  }
  if (result < 0) return result;
  values.model = (uint64_t)model;
  values.listen = url_len > 0 ? (const char*)url : NULL;
  values.listen_len = url_len;
  kvt_node_t node = 0;
  const kvt_status_t status = kvt_node_open((uint64_t)runtime, &values, &node);
  return FlatResult(status, (int64_t)node, FLAT_ERROR);
}

int64_t kvtf_node_url(int64_t node, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  size_t needed = 0;
  const kvt_status_t status = kvt_node_url((uint64_t)node, (char*)buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}

int64_t kvtf_node_serve(int64_t node, int64_t cache, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_node_serve((uint64_t)node, (uint64_t)cache), 0, FLAT_ERROR);
}

int64_t kvtf_node_close(int64_t node, int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_node_close((uint64_t)node, timeout_ms), 0, FLAT_ERROR);
}

void kvtf_node_destroy(int64_t node) { kvt_node_destroy((uint64_t)node); }

static const flat_field_t kNodeStatsFields[] = {
    FLAT_FIELD(kvt_node_stats_t, connections, FLAT_U32),
    FLAT_FIELD(kvt_node_stats_t, bytes_sent, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, bytes_received, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, frames_sent, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, frames_received, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, checksums, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, refused_version, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, refused_model, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, refused_namespace, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, refused_limit, FLAT_U64),
    FLAT_FIELD(kvt_node_stats_t, corrupt, FLAT_U64),
};

int64_t kvtf_node_stats(int64_t node, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  kvt_node_stats_t stats = {.struct_size = sizeof stats};
  const kvt_status_t status = kvt_node_stats((uint64_t)node, &stats);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatRecordOut(kNodeStatsFields, FLAT_COUNT(kNodeStatsFields), &stats, buf, cap);
}

int64_t kvtf_node_event_fd(int64_t node, uint8_t* err, size_t err_cap) {
  int32_t fd = -1;
  const kvt_status_t status = kvt_node_event_fd((uint64_t)node, &fd);
  return FlatResult(status, fd, FLAT_ERROR);
}

int64_t kvtf_node_poll(int64_t node, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  return FlatPoll(1, node, buf, cap, FLAT_ERROR);
}

int64_t kvtf_node_connect(int64_t node, const uint8_t* url, size_t url_len, int64_t timeout_ms, uint8_t* err,
                          size_t err_cap) {
  kvt_peer_t peer = 0;
  const kvt_status_t status =
      kvt_node_connect((uint64_t)node, url_len > 0 ? (const char*)url : "", url_len, timeout_ms, &peer);
  return FlatResult(status, (int64_t)peer, FLAT_ERROR);
}

void kvtf_peer_destroy(int64_t peer) { kvt_peer_destroy((uint64_t)peer); }

/* Checks that `count` slots of `stride` bytes fit into `cap`. */
static int64_t FlatSlotsCheck(int64_t count, int64_t stride, size_t cap, flat_error_t error) {
  if (stride <= 0) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "stride is %lld; it is at least 1", (long long)stride);
  }
  if (count > 0 && (uint64_t)stride > cap / (uint64_t)count) {
    return FlatRefuse(error, KVT_ERR_BUFFER_TOO_SMALL,
                      "frames have %zu bytes; %lld slots of %lld bytes need more", cap, (long long)count,
                      (long long)stride);
  }
  return 0;
}

int64_t kvtf_peer_pull(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len, uint8_t* frames,
                       size_t frames_cap, int64_t stride, uint8_t* lengths, size_t lengths_cap,
                       uint8_t* results, size_t results_cap, int64_t timeout_ms, uint8_t* err,
                       size_t err_cap) {
  const int64_t count = FlatKeyCount(keys_len, FLAT_ERROR);
  if (count < 0) return count;
  int64_t result = FlatResultsCheck(count, results_cap, FLAT_ERROR);
  if (result == 0) result = FlatSlotsCheck(count, stride, frames_cap, FLAT_ERROR);
  if (result == 0 && lengths_cap / sizeof(uint64_t) < (size_t)count) {
    result = FlatRefuse(FLAT_ERROR, KVT_ERR_BUFFER_TOO_SMALL, "lengths have %zu bytes; %lld keys need %lld",
                        lengths_cap, (long long)count, (long long)count * 8);
  }
  if (result < 0) return result;
  flat_items_t items;
  result = FlatItemsBegin(&items, (size_t)count, FLAT_ERROR);
  if (result < 0) return result;
  uint64_t operation = 0;
  const kvt_status_t status =
      kvt_peer_submit_pull((uint64_t)peer, keys, (size_t)count, frames, (size_t)stride, items.lengths,
                           items.results, timeout_ms, &operation);
  return FlatItemsFinish(&items, (size_t)count, 1, node, status, operation, timeout_ms, lengths, results,
                         FLAT_ERROR);
}

int64_t kvtf_peer_push(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len,
                       const uint8_t* frames, size_t frames_len, const uint8_t* lengths, size_t lengths_len,
                       uint8_t* results, size_t results_cap, int64_t timeout_ms, uint8_t* err,
                       size_t err_cap) {
  const flat_frames_t push = FLAT_FRAMES(1, node, peer);
  return FlatFramesNow(kvt_peer_submit_push, &push, results, results_cap, FLAT_ERROR);
}

int64_t kvtf_peer_submit_pull(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len,
                              int64_t stride, int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  const int64_t count = FlatKeyCount(keys_len, FLAT_ERROR);
  if (count < 0) return count;
  const int64_t checked = FlatSlotsCheck(count, stride, SIZE_MAX / 2, FLAT_ERROR);
  if (checked < 0) return checked;
  flat_operation_t* const operation = FlatOperationNew(1, node, keys, (size_t)count);
  if (operation == NULL) return FlatNoMemory(FLAT_ERROR, keys_len);
  operation->stride = (size_t)stride;
  operation->bytes = malloc((size_t)count * (size_t)stride + 1);
  if (operation->bytes == NULL) {
    FlatOperationEnd(&operation->object);
    return FlatNoMemory(FLAT_ERROR, (size_t)count * (size_t)stride);
  }
  pthread_mutex_lock(&flat_submit_mu);
  const kvt_status_t status = kvt_peer_submit_pull((uint64_t)peer, operation->keys, (size_t)count,
                                                   operation->bytes, operation->stride, operation->lengths,
                                                   operation->results, timeout_ms, &operation->operation);
  const int64_t result = FlatOperationEnter(operation, status, FLAT_ERROR);
  pthread_mutex_unlock(&flat_submit_mu);
  return result;
}

int64_t kvtf_peer_submit_push(int64_t node, int64_t peer, const uint8_t* keys, size_t keys_len,
                              const uint8_t* frames, size_t frames_len, const uint8_t* lengths,
                              size_t lengths_len, int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  const flat_frames_t push = FLAT_FRAMES(1, node, peer);
  return FlatFramesSubmit(kvt_peer_submit_push, &push, FLAT_ERROR);
}

/* Streams. */

int64_t kvtf_stream_open(int64_t node, const uint8_t* key, size_t key_len, uint8_t* err, size_t err_cap) {
  const int64_t checked = FlatKeyCheck(key_len, FLAT_ERROR);
  if (checked < 0) return checked;
  kvt_stream_t stream = 0;
  const kvt_status_t status = kvt_stream_open((uint64_t)node, key, &stream);
  return FlatResult(status, (int64_t)stream, FLAT_ERROR);
}

int64_t kvtf_stream_append(int64_t stream, const uint8_t* frame, size_t frame_len, uint8_t* err,
                           size_t err_cap) {
  return FlatResult(kvt_stream_append((uint64_t)stream, frame, frame_len), 0, FLAT_ERROR);
}

int64_t kvtf_stream_finish(int64_t stream, int64_t ok, uint8_t* err, size_t err_cap) {
  if (ok < 0 || ok > 1) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "ok is %lld; it is 0 or 1", (long long)ok);
  }
  return FlatResult(kvt_stream_finish((uint64_t)stream, (uint8_t)ok), 0, FLAT_ERROR);
}

void kvtf_stream_destroy(int64_t stream) { kvt_stream_destroy((uint64_t)stream); }

int64_t kvtf_peer_submit_pull_stream(int64_t node, int64_t peer, const uint8_t* key, size_t key_len,
                                     int64_t bytes, int64_t parts, int64_t timeout_ms, uint8_t* err,
                                     size_t err_cap) {
  enum { PARTS_MAX = 1 << 20 };
  const int64_t checked = FlatKeyCheck(key_len, FLAT_ERROR);
  if (checked < 0) return checked;
  if (bytes < 1 || parts < 1 || parts > PARTS_MAX) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT,
                      "bytes is %lld and parts %lld; both are at least 1, parts at most %d", (long long)bytes,
                      (long long)parts, PARTS_MAX);
  }
  flat_operation_t* const operation = FlatOperationNew(1, node, key, 1);
  if (operation == NULL) return FlatNoMemory(FLAT_ERROR, sizeof *operation);
  operation->count = 0; /* a stream has parts, whose number is not known, and no items */
  free(operation->lengths);
  operation->lengths = calloc((size_t)parts, sizeof *operation->lengths);
  operation->offsets = calloc((size_t)parts, sizeof *operation->offsets);
  operation->bytes = malloc((size_t)bytes);
  if (operation->lengths == NULL || operation->offsets == NULL || operation->bytes == NULL) {
    FlatOperationEnd(&operation->object);
    return FlatNoMemory(FLAT_ERROR, (size_t)bytes + 16 * (size_t)parts);
  }
  pthread_mutex_lock(&flat_submit_mu);
  const kvt_status_t status = kvt_peer_submit_pull_stream(
      (uint64_t)peer, operation->keys, operation->bytes, (size_t)bytes, operation->offsets,
      operation->lengths, (size_t)parts, timeout_ms, &operation->operation);
  const int64_t result = FlatOperationEnter(operation, status, FLAT_ERROR);
  pthread_mutex_unlock(&flat_submit_mu);
  return result;
}
