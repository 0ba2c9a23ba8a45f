/* Ends of lives: destroy in any order, close and destroy with operations in flight, deadlines and cancels.
 * After each the memory that was lent is overwritten and freed: with AddressSanitizer a late touch is a
 * failure. */
#include <stdlib.h>

#include "kit.h"

enum { OBJECTS = 10 };

static void DestroyNth(kit_t* kit, int which) {
  switch (which) {
    case 0:
      kvt_runtime_destroy(kit->runtime);
      break;
    case 1:
      kvt_model_destroy(kit->model);
      break;
    case 2:
      kvt_codec_destroy(kit->codec);
      break;
    case 3:
      kvt_cache_destroy(kit->cache);
      break;
    case 4:
      kvt_node_destroy(kit->node);
      break;
    case 5:
      kvt_node_destroy(kit->client);
      break;
    case 6:
      kvt_peer_destroy(kit->peer);
      break;
    case 7:
      kvt_stream_destroy(kit->stream);
      break;
    case 8:
      kvt_verifier_destroy(kit->verifier);
      break;
    default:
      kvt_meter_destroy(kit->meter);
      break;
  }
}

/* Memory that operations borrow. */
typedef struct lent {
  uint8_t base[KIT_FRAME_CAP];
  rows_t rows;
  uint64_t offsets[8], lengths[8];
  kvt_status_t results[KIT_BLOCKS];
} lent_t;

/* A pull of a stream that nobody finishes, a pull of frames and a load: some still run when the objects end.
 */
static lent_t* StartOperations(kit_t* kit, uint64_t* unending) {
  lent_t* lent = malloc(sizeof *lent);
  uint64_t operation = 0;
  RowsInit(&lent->rows, 0);
  CHECK_OK(kvt_peer_submit_pull_stream(kit->peer, kit->keys, lent->base, sizeof lent->base, lent->offsets,
                                       lent->lengths, 8, KIT_WAIT_MS, unending));
  CHECK_OK(kvt_cache_submit_load(kit->cache, kit->codec, &lent->rows.view, &kit->spec, KIT_BLOCK, kit->keys,
                                 KIT_BLOCKS, lent->results, KIT_WAIT_MS, &operation));
  return lent;
}

static void EndLent(lent_t* lent) {
  memset(lent, 0x5A, sizeof *lent);
  free(lent);
}

static void DestroyInAnyOrder(void) {
  static kit_t kit;
  for (int order = 0; order < 2 * OBJECTS; ++order) {
    uint64_t unending = 0;
    KitOpen(&kit);
    lent_t* lent = StartOperations(&kit, &unending);
    for (int i = 0; i < OBJECTS; ++i) {
      const int forward = (i + order / 2) % OBJECTS;
      DestroyNth(&kit, order % 2 == 0 ? forward : OBJECTS - 1 - forward);
    }
    EndLent(lent);
    uint8_t fingerprint[KVT_FINGERPRINT_BYTES];
    CHECK_STATUS(kvt_model_fingerprint(kit.model, fingerprint), KVT_ERR_STALE_HANDLE);
  }
}

static void CloseWithOperationsInFlight(void) {
  static kit_t kit;
  uint64_t unending = 0;
  KitOpen(&kit);
  lent_t* lent = StartOperations(&kit, &unending);
  CHECK_OK(kvt_cache_close(kit.cache, KIT_WAIT_MS)); /* the load ends by itself */
  CHECK_STATUS(kvt_node_close(kit.client, 50), KVT_ERR_TIMEOUT);
  CHECK_STATUS(kvt_runtime_close(kit.runtime, 20), KVT_ERR_BUSY);
  uint64_t operation = 0;
  size_t matched = 0;
  kvt_peer_t peer = 0;
  CHECK_STATUS(kvt_cache_match(kit.cache, kit.keys, 1, &matched), KVT_ERR_CLOSED);
  CHECK_STATUS(kvt_peer_submit_pull(kit.peer, kit.keys, 1, lent->base, sizeof lent->base, lent->lengths,
                                    lent->results, 1000, &operation),
               KVT_ERR_CLOSED);
  CHECK_STATUS(kvt_node_connect(kit.client, "tcp://127.0.0.1:1", 17, 1000, &peer), KVT_ERR_CLOSED);
  CHECK_OK(kvt_node_cancel(kit.client, unending));
  CHECK_STATUS(kvt_node_wait(kit.client, unending, KIT_WAIT_MS, NULL), KVT_ERR_CANCELLED);
  CHECK_OK(kvt_node_close(kit.client, KIT_WAIT_MS));
  EndLent(lent);
  const kvt_runtime_t runtime = kit.runtime;
  kit.runtime = 0;
  KitClose(&kit);
  CHECK_OK(kvt_runtime_close(runtime, KIT_WAIT_MS));
  kvt_runtime_destroy(runtime);
}

static void Cancelled(void) {
  static kit_t kit;
  uint64_t unending = 0;
  KitOpen(&kit);
  lent_t* lent = StartOperations(&kit, &unending);
  CHECK_OK(kvt_node_cancel(kit.client, unending));
  kvt_completion_t done;
  CHECK_STATUS(kvt_node_wait(kit.client, unending, KIT_WAIT_MS, &done), KVT_ERR_CANCELLED);
  CHECK(done.status == KVT_ERR_CANCELLED && done.kind == KVT_COMPLETION_DONE);
  CHECK_STATUS(kvt_node_cancel(kit.client, unending), KVT_ERR_NOT_FOUND);
  KitClose(&kit);
  EndLent(lent);
}

static void Deadline(void) {
  static kit_t kit;
  static lent_t lent;
  uint64_t operation = 0;
  KitOpen(&kit);
  /* Nobody opens this stream; the peer itself is alive, so it is not STALLED. */
  CHECK_OK(kvt_peer_submit_pull_stream(kit.peer, kit.keys + KVT_KEY_BYTES, lent.base, sizeof lent.base,
                                       lent.offsets, lent.lengths, 8, 100, &operation));
  CHECK_STATUS(kvt_node_wait(kit.client, operation, KIT_WAIT_MS, NULL), KVT_ERR_TIMEOUT);
  CHECK_OK(kvt_peer_submit_pull_stream(kit.peer, kit.keys, lent.base, sizeof lent.base, lent.offsets,
                                       lent.lengths, 8, KIT_WAIT_MS, &operation));
  kvt_completion_t done;
  memset(&done, 0xA5, sizeof done);
  CHECK_STATUS(kvt_node_wait(kit.client, operation, 20, &done), KVT_ERR_TIMEOUT); /* it goes on */
  CHECK(done.operation == UINT64_C(0xA5A5A5A5A5A5A5A5));
  CHECK_OK(kvt_stream_finish(kit.stream, 0)); /* the producer aborts */
  CHECK_STATUS(kvt_node_wait(kit.client, operation, KIT_WAIT_MS, NULL), KVT_ERR_CANCELLED);
  KitClose(&kit);
}

static void PeerGoes(void) {
  static kit_t kit;
  uint64_t unending = 0;
  KitOpen(&kit);
  lent_t* lent = StartOperations(&kit, &unending);
  kvt_node_destroy(kit.node);
  CHECK_STATUS(kvt_node_wait(kit.client, unending, KIT_WAIT_MS, NULL), KVT_ERR_PEER_DEAD);
  uint64_t operation = 0;
  CHECK_STATUS(kvt_peer_submit_pull(kit.peer, kit.keys, 1, lent->base, sizeof lent->base, lent->lengths,
                                    lent->results, 1000, &operation),
               KVT_ERR_PEER_DEAD);
  KitClose(&kit);
  EndLent(lent);
}

static void PeerDestroyed(void) {
  static kit_t kit;
  uint64_t unending = 0;
  KitOpen(&kit);
  lent_t* lent = StartOperations(&kit, &unending);
  kvt_peer_destroy(kit.peer);
  CHECK_STATUS(kvt_node_wait(kit.client, unending, KIT_WAIT_MS, NULL), KVT_ERR_CANCELLED);
  KitClose(&kit);
  EndLent(lent);
}

static kvt_status_t Pull(kvt_node_t node, kvt_peer_t peer, const uint8_t* key) {
  static uint8_t slot[KIT_FRAME_CAP];
  static uint64_t length;
  static kvt_status_t result;
  uint64_t operation = 0;
  const kvt_status_t status =
      kvt_peer_submit_pull(peer, key, 1, slot, sizeof slot, &length, &result, KIT_WAIT_MS, &operation);
  return status == KVT_OK ? kvt_node_wait(node, operation, KIT_WAIT_MS, NULL) : status;
}

/* A node may outlive the cache that it serves. */
static void ServedCacheEnds(void) {
  static kit_t kit;
  KitOpen(&kit);
  CHECK_OK(Pull(kit.client, kit.peer, kit.keys));
  kvt_cache_destroy(kit.cache);
  CHECK_STATUS(Pull(kit.client, kit.peer, kit.keys), KVT_ERR_CLOSED);
  KitClose(&kit);
}

/* Stores all blocks under a memory limit; returns the operation's status. */
static kvt_status_t StoreUnderLimit(uint64_t limit, kvt_cache_stats_t* stats) {
  static kit_t kit;
  KitOpenCore(&kit);
  kvt_runtime_options_t options;
  kvt_runtime_options_init(&options, sizeof options);
  options.memory_limit_bytes = limit;
  CHECK_OK(kvt_runtime_create(&options, &kit.runtime));
  CHECK_OK(kvt_cache_open(kit.runtime, "mem:", 4, &kit.cache));
  kvt_status_t results[KIT_BLOCKS] = {0};
  uint64_t operation = 0, used = 0;
  kvt_status_t status = kvt_cache_submit_store(kit.cache, kit.codec, &kit.rows.view, &kit.spec, KIT_BLOCK,
                                               kit.keys, KIT_BLOCKS, results, KIT_WAIT_MS, &operation);
  if (status == KVT_OK) status = kvt_cache_wait(kit.cache, operation, KIT_WAIT_MS, NULL);
  CHECK_OK(kvt_runtime_memory_used(kit.runtime, &used));
  CHECK(used <= limit);
  stats->struct_size = sizeof *stats;
  CHECK_OK(kvt_cache_stats(kit.cache, stats));
  KitClose(&kit);
  return status;
}

/* A cache in memory gives up its oldest frames to stay under the limit; a limit without room for one frame is
 * an error. */
static void MemoryLimit(void) {
  kvt_cache_stats_t stats;
  CHECK_OK(StoreUnderLimit(16 * 1024, &stats));
  CHECK(stats.evictions > 0 && stats.frames > 0);
  CHECK_STATUS(StoreUnderLimit(1024, &stats), KVT_ERR_LIMIT);
  CHECK(stats.frames == 0);
}

int main(void) {
  RUN(DestroyInAnyOrder);
  RUN(CloseWithOperationsInFlight);
  RUN(Cancelled);
  RUN(Deadline);
  RUN(PeerGoes);
  RUN(PeerDestroyed);
  RUN(ServedCacheEnds);
  RUN(MemoryLimit);
  return Finish();
}
