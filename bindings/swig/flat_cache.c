/* The cache. Calls that move bytes wait inside the call and borrow the host's memory only until they return;
 * their submit_ twins own what they need. */
#include "flat_internal.h"

int64_t kvtf_cache_open(int64_t runtime, const uint8_t* url, size_t url_len, uint8_t* err, size_t err_cap) {
  kvt_cache_t cache = 0;
  const kvt_status_t status =
      kvt_cache_open((uint64_t)runtime, url_len > 0 ? (const char*)url : "", url_len, &cache);
  return FlatResult(status, (int64_t)cache, FLAT_ERROR);
}

int64_t kvtf_cache_close(int64_t cache, int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_cache_close((uint64_t)cache, timeout_ms), 0, FLAT_ERROR);
}

void kvtf_cache_destroy(int64_t cache) { kvt_cache_destroy((uint64_t)cache); }

int64_t kvtf_cache_put(int64_t cache, const uint8_t* keys, size_t keys_len, const uint8_t* frames,
                       size_t frames_len, const uint8_t* lengths, size_t lengths_len, uint8_t* results,
                       size_t results_cap, int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  const flat_frames_t put = FLAT_FRAMES(0, cache, cache);
  return FlatFramesNow(kvt_cache_submit_put, &put, results, results_cap, FLAT_ERROR);
}

int64_t kvtf_cache_put_one(int64_t cache, const uint8_t* key, size_t key_len, const uint8_t* frame,
                           size_t frame_len, uint8_t* err, size_t err_cap) {
  const int64_t checked = FlatKeyCheck(key_len, FLAT_ERROR);
  if (checked < 0) return checked;
  return FlatResult(kvt_cache_put((uint64_t)cache, key, frame, frame_len), 0, FLAT_ERROR);
}

int64_t kvtf_cache_get(int64_t cache, const uint8_t* key, size_t key_len, uint8_t* buf, size_t cap,
                       uint8_t* err, size_t err_cap) {
  const int64_t checked = FlatKeyCheck(key_len, FLAT_ERROR);
  if (checked < 0) return checked;
  size_t needed = 0;
  const kvt_status_t status = kvt_cache_get((uint64_t)cache, key, buf, cap, &needed);
  return FlatNeeded(status, needed, FLAT_ERROR);
}

int64_t kvtf_cache_match(int64_t cache, const uint8_t* keys, size_t keys_len, uint8_t* err, size_t err_cap) {
  const int64_t count = FlatKeyCount(keys_len, FLAT_ERROR);
  if (count < 0) return count;
  size_t matched = 0;
  const kvt_status_t status = kvt_cache_match((uint64_t)cache, keys, (size_t)count, &matched);
  return FlatResult(status, (int64_t)matched, FLAT_ERROR);
}

int64_t kvtf_cache_remove(int64_t cache, const uint8_t* keys, size_t keys_len, uint8_t* err, size_t err_cap) {
  const int64_t count = FlatKeyCount(keys_len, FLAT_ERROR);
  if (count < 0) return count;
  size_t removed = 0;
  const kvt_status_t status = kvt_cache_remove((uint64_t)cache, keys, (size_t)count, &removed);
  return FlatResult(status, (int64_t)removed, FLAT_ERROR);
}

static const flat_field_t kCacheStatsFields[] = {
    FLAT_FIELD(kvt_cache_stats_t, frames, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, bytes, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, capacity_bytes, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, puts, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, hits, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, misses, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, evictions, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, removals, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, corrupt, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, torn, FLAT_U64),
    FLAT_FIELD(kvt_cache_stats_t, checksums, FLAT_U64),
};

int64_t kvtf_cache_stats(int64_t cache, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  kvt_cache_stats_t stats = {.struct_size = sizeof stats};
  const kvt_status_t status = kvt_cache_stats((uint64_t)cache, &stats);
  if (status != KVT_OK) return FlatResult(status, 0, FLAT_ERROR);
  return FlatRecordOut(kCacheStatsFields, FLAT_COUNT(kCacheStatsFields), &stats, buf, cap);
}

int64_t kvtf_cache_event_fd(int64_t cache, uint8_t* err, size_t err_cap) {
  int32_t fd = -1;
  const kvt_status_t status = kvt_cache_event_fd((uint64_t)cache, &fd);
  return FlatResult(status, fd, FLAT_ERROR);
}

int64_t kvtf_cache_poll(int64_t cache, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  return FlatPoll(0, cache, buf, cap, FLAT_ERROR);
}

/* Store and load. */

typedef kvt_status_t (*flat_move_fn)(kvt_cache_t, kvt_codec_t, const kvt_view_t*, const kvt_frame_spec_t*,
                                     uint32_t, const uint8_t*, size_t, kvt_status_t*, int64_t, uint64_t*);

/* The arguments that store and load share. */
typedef struct flat_move {
  int64_t cache, codec;
  flat_view_args_t view;
  const uint8_t *spec, *digest, *keys;
  size_t spec_len, digest_len, keys_len;
  int64_t block_tokens, timeout_ms;
} flat_move_t;

#define FLAT_MOVE(memory, memory_cap)                                                                        \
  ((flat_move_t){cache, codec, FLAT_VIEW_ARGS(memory, memory_cap), spec, digest, keys, spec_len, digest_len, \
                 keys_len, block_tokens, timeout_ms})

/* Checks everything but the view. @return the number of keys. */
static int64_t FlatMoveCheck(const flat_move_t* move, kvt_frame_spec_t* spec, flat_error_t error) {
  const int64_t count = FlatKeyCount(move->keys_len, error);
  if (count < 0) return count;
  if (move->block_tokens < 0 || move->block_tokens > UINT32_MAX) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "block_tokens is %lld", (long long)move->block_tokens);
  }
  const int64_t built =
      FlatSpecBuild(spec, move->spec, move->spec_len, NULL, 0, move->digest, move->digest_len, error);
  return built < 0 ? built : count;
}

static int64_t FlatMoveNow(flat_move_fn function, const flat_move_t* move, uint8_t* results,
                           size_t results_cap, flat_error_t error) {
  flat_codec_call_t call;
  const int64_t count = FlatMoveCheck(move, &call.spec, error);
  if (count < 0) return count;
  int64_t result = FlatResultsCheck(count, results_cap, error);
  if (result == 0) result = FlatCodecCallBegin(&call, move->codec, &move->view, error);
  if (result < 0) return result;
  flat_items_t items;
  result = FlatItemsBegin(&items, (size_t)count, error);
  if (result == 0) {
    uint64_t operation = 0;
    const kvt_status_t status = function((uint64_t)move->cache, call.codec->codec, &call.view.view,
                                         &call.spec, (uint32_t)move->block_tokens, move->keys, (size_t)count,
                                         items.results, move->timeout_ms, &operation);
    result = FlatItemsFinish(&items, (size_t)count, 0, move->cache, status, operation, move->timeout_ms, NULL,
                             results, error);
  }
  FlatCodecCallEnd(&call);
  return result;
}

static int64_t FlatMoveSubmit(flat_move_fn function, flat_move_t* move, int64_t held, flat_error_t error) {
  kvt_frame_spec_t spec;
  const int64_t count = FlatMoveCheck(move, &spec, error);
  if (count < 0) return count;
  flat_codec_t* const codec = FlatHold(move->codec, FLAT_CODEC);
  if (codec == NULL) return FlatStale("codec", move->codec, error);
  flat_memory_t* const memory = FlatHold(held, FLAT_MEMORY);
  flat_operation_t* const operation = FlatOperationNew(0, move->cache, move->keys, (size_t)count);
  int64_t result = 0;
  if (memory == NULL) {
    result = FlatStale("memory", held, error);
  } else if (operation == NULL) {
    result = FlatNoMemory(error, sizeof *operation);
  } else {
    move->view.memory = memory->data;
    move->view.memory_cap = memory->bytes;
    result = FlatViewBuild(&operation->view, &codec->rows, &move->view, error);
    if (result < 0) memset(&operation->view, 0, sizeof operation->view);
  }
  if (result < 0) {
    if (operation != NULL) FlatOperationEnd(&operation->object);
    FlatLet(memory);
    FlatLet(codec);
    return result;
  }
  operation->held = memory;
  pthread_mutex_lock(&flat_submit_mu);
  const kvt_status_t status = function((uint64_t)move->cache, codec->codec, &operation->view.view, &spec,
                                       (uint32_t)move->block_tokens, operation->keys, (size_t)count,
                                       operation->results, move->timeout_ms, &operation->operation);
  result = FlatOperationEnter(operation, status, error);
  pthread_mutex_unlock(&flat_submit_mu);
  FlatLet(codec);
  return result;
}

int64_t kvtf_cache_store(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                         const uint8_t* bases, size_t bases_len, const uint8_t* table, size_t table_len,
                         uint8_t* memory, size_t memory_cap, const uint8_t* spec, size_t spec_len,
                         const uint8_t* digest, size_t digest_len, int64_t block_tokens, const uint8_t* keys,
                         size_t keys_len, uint8_t* results, size_t results_cap, int64_t timeout_ms,
                         uint8_t* err, size_t err_cap) {
  const flat_move_t move = FLAT_MOVE(memory, memory_cap);
  return FlatMoveNow(kvt_cache_submit_store, &move, results, results_cap, FLAT_ERROR);
}

int64_t kvtf_cache_load(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                        const uint8_t* bases, size_t bases_len, const uint8_t* table, size_t table_len,
                        uint8_t* memory, size_t memory_cap, const uint8_t* spec, size_t spec_len,
                        const uint8_t* digest, size_t digest_len, int64_t block_tokens, const uint8_t* keys,
                        size_t keys_len, uint8_t* results, size_t results_cap, int64_t timeout_ms,
                        uint8_t* err, size_t err_cap) {
  const flat_move_t move = FLAT_MOVE(memory, memory_cap);
  return FlatMoveNow(kvt_cache_submit_load, &move, results, results_cap, FLAT_ERROR);
}

int64_t kvtf_cache_submit_store(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                                const uint8_t* bases, size_t bases_len, const uint8_t* table,
                                size_t table_len, int64_t held, const uint8_t* spec, size_t spec_len,
                                const uint8_t* digest, size_t digest_len, int64_t block_tokens,
                                const uint8_t* keys, size_t keys_len, int64_t timeout_ms, uint8_t* err,
                                size_t err_cap) {
  flat_move_t move = FLAT_MOVE(NULL, 0);
  return FlatMoveSubmit(kvt_cache_submit_store, &move, held, FLAT_ERROR);
}

int64_t kvtf_cache_submit_load(int64_t cache, int64_t codec, const uint8_t* view, size_t view_len,
                               const uint8_t* bases, size_t bases_len, const uint8_t* table, size_t table_len,
                               int64_t held, const uint8_t* spec, size_t spec_len, const uint8_t* digest,
                               size_t digest_len, int64_t block_tokens, const uint8_t* keys, size_t keys_len,
                               int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  flat_move_t move = FLAT_MOVE(NULL, 0);
  return FlatMoveSubmit(kvt_cache_submit_load, &move, held, FLAT_ERROR);
}

int64_t kvtf_cache_submit_put(int64_t cache, const uint8_t* keys, size_t keys_len, const uint8_t* frames,
                              size_t frames_len, const uint8_t* lengths, size_t lengths_len,
                              int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  const flat_frames_t put = FLAT_FRAMES(0, cache, cache);
  return FlatFramesSubmit(kvt_cache_submit_put, &put, FLAT_ERROR);
}
