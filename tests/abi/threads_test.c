/* Many threads use the same objects, and some objects end while they are in use: errors are allowed, wrong
 * bytes and crashes are not. Runs under ThreadSanitizer too. */
#include <pthread.h>
#include <stdlib.h>

#include "kit.h"

enum { THREADS = 8, ROUNDS = 40 };

static kit_t kit;

typedef struct worker {
  pthread_t thread;
  int index;
  int wrong; /* things that must not have happened */
  void (*body)(struct worker*);
} worker_t;

static void* Main(void* argument) {
  worker_t* worker = argument;
  worker->body(worker);
  return NULL;
}

static void RunAll(void (*body)(worker_t*)) {
  static worker_t workers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    workers[i].index = i;
    workers[i].wrong = 0;
    workers[i].body = body;
    CHECK(pthread_create(&workers[i].thread, NULL, Main, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
    CHECK(workers[i].wrong == 0);
  }
}

/* The text is the calling thread's own. */
static void ErrorTextBody(worker_t* worker) {
  for (int round = 0; round < ROUNDS; ++round) {
    kvt_codec_options_t options;
    kvt_codec_options_init(&options, sizeof options);
    char name[16], text[KVT_ERROR_TEXT_MAX + 1];
    options.name_len = (size_t)snprintf(name, sizeof name, "codec-%d", worker->index);
    options.name = name;
    kvt_codec_t codec = 0;
    size_t needed = 0;
    if (kvt_codec_create(kit.model, &options, &codec) != KVT_ERR_UNSUPPORTED) ++worker->wrong;
    if (kvt_last_error(text, sizeof text - 1, &needed) != KVT_OK) ++worker->wrong;
    text[needed] = 0;
    if (strstr(text, name) == NULL) ++worker->wrong;
  }
}

/* Stores and loads through one cache and one codec; each thread has its own keys. */
static void CacheBody(worker_t* worker) {
  rows_t* rows = malloc(sizeof *rows);
  rows_t* back = malloc(sizeof *back);
  RowsInit(rows, (uint32_t)worker->index + 100);
  for (int round = 0; round < ROUNDS; ++round) {
    int32_t tokens[KIT_TOKENS];
    for (int i = 0; i < KIT_TOKENS; ++i) tokens[i] = worker->index * 1000 + round;
    kvt_key_options_t options;
    kvt_key_options_init(&options, sizeof options);
    uint8_t keys[KIT_BLOCKS * KVT_KEY_BYTES];
    kvt_status_t results[KIT_BLOCKS];
    size_t needed = 0;
    uint64_t operation = 0;
    if (kvt_keys_compute(kit.model, &options, tokens, KIT_TOKENS, keys, sizeof keys, &needed) != KVT_OK)
      ++worker->wrong;
    if (kvt_cache_submit_store(kit.cache, kit.codec, &rows->view, &kit.spec, KIT_BLOCK, keys, KIT_BLOCKS,
                               results, KIT_WAIT_MS, &operation) != KVT_OK ||
        kvt_cache_wait(kit.cache, operation, KIT_WAIT_MS, NULL) != KVT_OK)
      ++worker->wrong;
    RowsInit(back, 0);
    if (kvt_cache_submit_load(kit.cache, kit.codec, &back->view, &kit.spec, KIT_BLOCK, keys, KIT_BLOCKS,
                              results, KIT_WAIT_MS, &operation) != KVT_OK ||
        kvt_cache_wait(kit.cache, operation, KIT_WAIT_MS, NULL) != KVT_OK ||
        memcmp(back->data, rows->data, sizeof rows->data) != 0)
      ++worker->wrong;
  }
  free(back);
  free(rows);
}

/* Pulls over one connection. */
static void PullBody(worker_t* worker) {
  uint8_t* slot = malloc(KIT_FRAME_CAP);
  for (int round = 0; round < ROUNDS; ++round) {
    uint64_t length = 0, operation = 0;
    kvt_status_t result;
    if (kvt_peer_submit_pull(kit.peer, kit.keys, 1, slot, KIT_FRAME_CAP, &length, &result, KIT_WAIT_MS,
                             &operation) != KVT_OK ||
        kvt_node_wait(kit.client, operation, KIT_WAIT_MS, NULL) != KVT_OK || length != kit.frame_len ||
        memcmp(slot, kit.frame, kit.frame_len) != 0)
      ++worker->wrong;
  }
  free(slot);
}

/* Thread 0 destroys the cache while the others use it. What is lent lives until every thread has joined: a
 * wait that loses the race says KVT_ERR_STALE_HANDLE before destroy has returned. */
static kvt_cache_t doomed;
static struct {
  rows_t rows;
  kvt_status_t results[KIT_BLOCKS];
} lent[THREADS];

static void DoomedBody(worker_t* worker) {
  rows_t* rows = &lent[worker->index].rows;
  RowsInit(rows, 5);
  for (int round = 0; round < ROUNDS; ++round) {
    if (worker->index == 0 && round == ROUNDS / 2) kvt_cache_destroy(doomed);
    uint64_t operation = 0;
    kvt_status_t status =
        kvt_cache_submit_store(doomed, kit.codec, &rows->view, &kit.spec, KIT_BLOCK, kit.keys, KIT_BLOCKS,
                               lent[worker->index].results, KIT_WAIT_MS, &operation);
    if (status == KVT_OK) status = kvt_cache_wait(doomed, operation, KIT_WAIT_MS, NULL);
    if (status != KVT_OK && status != KVT_ERR_STALE_HANDLE && status != KVT_ERR_CLOSED &&
        status != KVT_ERR_CANCELLED && status != KVT_ERR_NOT_FOUND)
      ++worker->wrong;
    size_t matched = 0;
    status = kvt_cache_match(doomed, kit.keys, KIT_BLOCKS, &matched);
    if (status != KVT_OK && status != KVT_ERR_STALE_HANDLE && status != KVT_ERR_CLOSED) ++worker->wrong;
  }
}

/* Models, codecs and verifiers come and go; ids of one thread never reach an object of another. */
static void ChurnBody(worker_t* worker) {
  for (int round = 0; round < ROUNDS * 5; ++round) {
    kvt_model_options_t options = KitModelOptions();
    const kvt_verifier_options_t verifying = KitVerifierOptions();
    kvt_model_t model = 0;
    kvt_verifier_t verifier = 0;
    uint8_t fingerprint[KVT_FINGERPRINT_BYTES];
    options.layers = (uint32_t)worker->index + 1;
    if (kvt_model_create(&options, &model) != KVT_OK) ++worker->wrong;
    if (kvt_verifier_create(&verifying, &verifier) != KVT_OK) ++worker->wrong;
    kvt_shard_t shard;
    if (kvt_shard_init(model, &shard, sizeof shard) != KVT_OK || shard.layer_end != options.layers)
      ++worker->wrong;
    kvt_model_destroy(model);
    if (kvt_model_fingerprint(model, fingerprint) != KVT_ERR_STALE_HANDLE) ++worker->wrong;
    kvt_verifier_destroy(verifier);
  }
}

static void RequestBody(worker_t* worker) {
  for (int round = 0; round < ROUNDS; ++round) {
    uint64_t request = 0;
    if (kvt_request_begin(kit.meter, "threads", 7, &request) != KVT_OK ||
        kvt_request_part(kit.meter, request, KVT_PART_PREFILL) != KVT_OK ||
        kvt_request_first_token(kit.meter, request) != KVT_OK ||
        kvt_request_end(kit.meter, request) != KVT_OK)
      ++worker->wrong;
  }
}

static void ErrorText(void) { RunAll(ErrorTextBody); }
static void SharedCache(void) { RunAll(CacheBody); }
static void SharedPeer(void) { RunAll(PullBody); }
static void SharedMeter(void) { RunAll(RequestBody); }
static void Churn(void) { RunAll(ChurnBody); }

static void DestroyInUse(void) {
  CHECK_OK(kvt_cache_open(kit.runtime, "mem:", 4, &doomed));
  RunAll(DoomedBody);
}

int main(void) {
  KitOpen(&kit);
  RUN(ErrorText);
  RUN(SharedCache);
  RUN(SharedPeer);
  RUN(SharedMeter);
  RUN(Churn);
  RUN(DestroyInUse);
  KitClose(&kit);
  return Finish();
}
