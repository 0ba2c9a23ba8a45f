/* The flat facade as the languages use it: every object once from its creation to its end, in one thread and
 * in several, and its refusals. Under a sanitizer it also shows that nothing leaks and no byte outside is
 * touched. */
#include <pthread.h>

#include "bindings/flat/kit.h"

static int64_t runtime, model, cache;
static uint8_t keys[BLOCKS][KVTF_KEY_BYTES];
static uint8_t* frames[BLOCKS];
static uint64_t lengths[BLOCKS];

static void Open(void) {
  CHECK(kvtf_abi_version() == kvtf_header_abi_version());
  runtime = GOOD(kvtf_runtime_create(NONE, TEXT));
  model = NewModel("flat");
  cache = GOOD(kvtf_cache_open(runtime, (const uint8_t*)"mem:?capacity=16MiB", 19, TEXT));
  MakeKeys(model, keys);
  for (int i = 0; i < BLOCKS; ++i) frames[i] = MakeFrame(model, keys[i], i, &lengths[i]);
}

static void Close(void) {
  for (int i = 0; i < BLOCKS; ++i) free(frames[i]);
  GOOD(kvtf_cache_close(cache, WAIT_MS, TEXT));
  kvtf_cache_destroy(cache);
  kvtf_model_destroy(model);
  GOOD(kvtf_runtime_close(runtime, WAIT_MS, TEXT));
  kvtf_runtime_destroy(runtime);
}

static void Texts(void) {
  uint8_t small[4] = {9, 9, 9, 9};
  CHECK(kvtf_cache_get(-1, keys[0], KVTF_KEY_BYTES, NONE, small, 3) < 0);
  CHECK(small[2] == 0 && small[3] == 9);
  CHECK(kvtf_cache_get(-1, keys[0], KVTF_KEY_BYTES, NONE, small, 1) < 0 && small[0] == 0);
  CHECK(kvtf_cache_get(-1, keys[0], KVTF_KEY_BYTES, NONE, NONE) < 0);
  CHECK(kvtf_cache_get(-1, keys[0], 3, NONE, NONE) == KVTF_INVALID_ARGUMENT);
  uint8_t name[32];
  CHECK(kvtf_status_name(KVTF_TIMEOUT, name, sizeof name) == 15 && memcmp(name, "KVT_ERR_TIMEOUT", 15) == 0);
  CHECK(kvtf_status_name(INT64_MIN, NONE) > 0);
  CHECK(kvtf_version(NONE) > 0);
}

static void Records(void) {
  int64_t words[32];
  for (int64_t record = 1; record <= KVTF_RECORD_CALIBRATION; ++record) {
    const int64_t bytes = GOOD(kvtf_defaults(record, NONE, TEXT));
    CHECK(bytes > 0 && bytes <= (int64_t)sizeof words);
    CHECK(kvtf_defaults(record, (uint8_t*)words, (size_t)bytes, TEXT) == bytes);
  }
  REFUSED(INVALID_ARGUMENT, "99", kvtf_defaults(99, NONE, TEXT));
  REFUSED(INVALID_ARGUMENT, "record of 7", kvtf_runtime_create((uint8_t*)words, 7, TEXT));
  REFUSED(INVALID_ARGUMENT, "record of 24", kvtf_runtime_create((uint8_t*)words, 24, TEXT));
  words[0] = -1;
  REFUSED(INVALID_ARGUMENT, "threads is -1", kvtf_runtime_create((uint8_t*)words, 8, TEXT));
}

static void PutAndGet(void) {
  int32_t result = 1;
  GOOD(kvtf_cache_put(cache, keys[0], KVTF_KEY_BYTES, frames[0], (size_t)lengths[0],
                      BYTES_OF(lengths) / BLOCKS, (uint8_t*)&result, sizeof result, WAIT_MS, TEXT));
  CHECK(result == KVTF_OK);
  const uint8_t* const frame = frames[1];
  const size_t frame_len = (size_t)lengths[1];
  CHECK(kvtf_cache_put_one(cache, keys[1], KVTF_KEY_BYTES, frame, frame_len, TEXT) == 0);
  CHECK(kvtf_cache_put_one(cache, keys[1], KVTF_KEY_BYTES, frame, frame_len, TEXT) == 0);
  uint8_t* const whole = malloc((size_t)lengths[0]);
  CHECK(frame_len <= lengths[0] &&
        kvtf_cache_get(cache, keys[1], KVTF_KEY_BYTES, whole, frame_len, TEXT) == (int64_t)frame_len);
  CHECK(memcmp(whole, frame, frame_len) == 0);
  CHECK(kvtf_cache_match(cache, keys[0], sizeof keys, TEXT) == 2);
  CHECK(kvtf_cache_remove(cache, keys[1], KVTF_KEY_BYTES, TEXT) == 1);
  CHECK(kvtf_cache_get(cache, keys[0], KVTF_KEY_BYTES, whole, (size_t)lengths[0], TEXT) ==
        (int64_t)lengths[0]);
  CHECK(memcmp(whole, frames[0], (size_t)lengths[0]) == 0);
  CHECK(kvtf_cache_get(cache, keys[0], KVTF_KEY_BYTES, NONE, TEXT) == (int64_t)lengths[0]);
  free(whole);
  CHECK(kvtf_cache_match(cache, keys[0], sizeof keys, TEXT) == 1);
  REFUSED(NOT_FOUND, "", kvtf_cache_get(cache, keys[1], KVTF_KEY_BYTES, NONE, TEXT));
  REFUSED(BUFFER_TOO_SMALL, "results",
          kvtf_cache_put(cache, keys[0], KVTF_KEY_BYTES, frames[0], (size_t)lengths[0],
                         BYTES_OF(lengths) / BLOCKS, (uint8_t*)&result, 3, WAIT_MS, TEXT));
  REFUSED(INVALID_ARGUMENT, "lengths",
          kvtf_cache_put(cache, keys[0], KVTF_KEY_BYTES, frames[0], (size_t)lengths[0], NONE,
                         (uint8_t*)&result, 4, WAIT_MS, TEXT));
  REFUSED(INVALID_ARGUMENT, "length 0",
          kvtf_cache_put(cache, keys[0], KVTF_KEY_BYTES, frames[0], 10, BYTES_OF(lengths) / BLOCKS,
                         (uint8_t*)&result, 4, WAIT_MS, TEXT));
  REFUSED(INVALID_ARGUMENT, "35", kvtf_cache_match(cache, keys[0], 35, TEXT));
  CHECK(kvtf_cache_remove(cache, keys[0], sizeof keys, TEXT) == 1);
  int64_t stats[KVTF_CACHE_STATS_WORDS];
  GOOD(kvtf_cache_stats(cache, (uint8_t*)stats, sizeof stats, TEXT));
  CHECK(stats[KVTF_CACHE_STATS_FRAMES] == 0 && stats[KVTF_CACHE_STATS_PUTS] == 3);
}

/* More items than fit the stack's share, whose lengths and results are allocated. */
static void ManyItems(void) {
  enum { MANY = 40 };
  uint8_t same[MANY][KVTF_KEY_BYTES];
  uint64_t long_list[MANY];
  int32_t results[MANY];
  uint8_t* const packed = malloc(MANY * (size_t)lengths[0]);
  for (int i = 0; i < MANY; ++i) {
    memcpy(same[i], keys[0], KVTF_KEY_BYTES);
    memcpy(packed + (size_t)i * lengths[0], frames[0], (size_t)lengths[0]);
    long_list[i] = lengths[0];
    results[i] = 1;
  }
  CHECK(GOOD(kvtf_cache_put(cache, same[0], sizeof same, packed, MANY * (size_t)lengths[0],
                            BYTES_OF(long_list), (uint8_t*)results, sizeof results, WAIT_MS, TEXT)) == MANY);
  for (int i = 0; i < MANY; ++i) CHECK(results[i] == KVTF_OK);
  free(packed);
}

static void StoreAndLoad(void) {
  view_t from, to;
  int32_t results[BLOCKS];
  ViewInit(&from, 2);
  ViewInit(&to, 0);
  const int64_t codec = GOOD(kvtf_codec_create(model, NONE, NONE, NONE, TEXT));
  kvtf_cache_remove(cache, keys[0], sizeof keys, TEXT);
  CHECK(GOOD(kvtf_cache_store(cache, codec, VIEW_OF(&from), NONE, NONE, BLOCK, keys[0], sizeof keys,
                              (uint8_t*)results, sizeof results, WAIT_MS, TEXT)) == BLOCKS);
  CHECK(GOOD(kvtf_cache_load(cache, codec, VIEW_OF(&to), NONE, NONE, BLOCK, keys[0], sizeof keys,
                             (uint8_t*)results, sizeof results, WAIT_MS, TEXT)) == BLOCKS);
  CHECK(memcmp(from.memory, to.memory, VIEW_BYTES) == 0);
  REFUSED(OUT_OF_RANGE, "",
          kvtf_cache_load(cache, codec, VIEW_OF(&to), NONE, NONE, BLOCK * 2, keys[0], sizeof keys,
                          (uint8_t*)results, sizeof results, WAIT_MS, TEXT));
  /* The same as operations, over memory that they hold. */
  const int64_t memory = GOOD(kvtf_memory_create(VIEW_BYTES, TEXT));
  const int64_t operation = GOOD(kvtf_cache_submit_load(
      cache, codec, (const uint8_t*)to.record, sizeof to.record, (const uint8_t*)to.bases, sizeof to.bases,
      NONE, memory, NONE, NONE, BLOCK, keys[0], sizeof keys, WAIT_MS, TEXT));
  REFUSED(BUSY, "memory", kvtf_memory_destroy(memory, TEXT));
  GOOD(kvtf_operation_wait(operation, WAIT_MS, NONE, TEXT));
  GOOD(kvtf_memory_read(memory, 0, to.memory, VIEW_BYTES, TEXT));
  CHECK(memcmp(from.memory, to.memory, VIEW_BYTES) == 0);
  REFUSED(OUT_OF_RANGE, "offset 1", kvtf_memory_read(memory, 1, to.memory, VIEW_BYTES, TEXT));
  REFUSED(OUT_OF_RANGE, "offset -1", kvtf_memory_write(memory, -1, to.memory, 1, TEXT));
  kvtf_operation_release(operation);
  REFUSED(STALE_HANDLE, "memory",
          kvtf_cache_submit_load(cache, codec, (const uint8_t*)to.record, sizeof to.record,
                                 (const uint8_t*)to.bases, sizeof to.bases, NONE, memory + 1, NONE, NONE,
                                 BLOCK, keys[0], sizeof keys, WAIT_MS, TEXT));
  GOOD(kvtf_memory_destroy(memory, TEXT));
  kvtf_codec_destroy(codec);
  ViewEnd(&from);
  ViewEnd(&to);
}

static int64_t SubmitPut(int block, uint8_t* err, size_t err_cap) {
  return kvtf_cache_submit_put(cache, keys[block], KVTF_KEY_BYTES, frames[block], (size_t)lengths[block],
                               (const uint8_t*)&lengths[block], 8, WAIT_MS, err, err_cap);
}

static void Operations(void) {
  uint8_t completions[4 * KVTF_COMPLETION_BYTES];
  int32_t result = 1;
  const int64_t operation = GOOD(SubmitPut(1, TEXT));
  CHECK(kvtf_event_wait(GOOD(kvtf_cache_event_fd(cache, TEXT)), WAIT_MS, TEXT) == 1);
  CHECK(kvtf_cache_poll(cache, completions, sizeof completions, TEXT) == KVTF_COMPLETION_BYTES);
  CHECK(memcmp(completions, &operation, sizeof operation) == 0);
  REFUSED(INVALID_ARGUMENT, "capacity", kvtf_cache_poll(cache, completions, 8, TEXT));
  GOOD(kvtf_operation_wait(operation, 0, completions, sizeof completions, TEXT));
  CHECK(kvtf_operation_results(operation, (uint8_t*)&result, sizeof result, TEXT) == 4 && result == KVTF_OK);
  REFUSED(OUT_OF_RANGE, "item", kvtf_operation_frame(operation, 0, NONE, TEXT));
  GOOD(kvtf_operation_cancel(operation, TEXT));
  kvtf_operation_release(operation);
  kvtf_operation_release(operation);
  REFUSED(STALE_HANDLE, "operation", kvtf_operation_results(operation, NONE, TEXT));
  REFUSED(WRONG_HANDLE, "no operation", kvtf_operation_cancel(cache, TEXT));
  for (int i = 0; i < 50; ++i) {
    const int64_t forgotten = GOOD(SubmitPut(i % BLOCKS, TEXT));
    if (i % 3 == 0) kvtf_operation_cancel(forgotten, TEXT);
    kvtf_operation_release(forgotten);
  }
}

static int64_t OpenNode(const char* url) {
  return GOOD(kvtf_node_open(runtime, model, NONE, (const uint8_t*)url, strlen(url), NONE, TEXT));
}

typedef struct pair {
  int64_t server, client, peer;
} pair_t;

static pair_t OpenPair(void) {
  pair_t pair = {OpenNode("tcp://127.0.0.1:0"), OpenNode(""), 0};
  uint8_t url[128];
  const int64_t url_len = GOOD(kvtf_node_url(pair.server, url, sizeof url, TEXT));
  pair.peer = GOOD(kvtf_node_connect(pair.client, url, (size_t)url_len, WAIT_MS, TEXT));
  return pair;
}

static void ClosePair(pair_t pair) {
  kvtf_peer_destroy(pair.peer);
  kvtf_node_destroy(pair.client);
  kvtf_node_destroy(pair.server);
}

static void PullAndPush(void) {
  const pair_t pair = OpenPair();
  GOOD(kvtf_node_serve(pair.server, cache, TEXT));
  int32_t results[2];
  uint64_t got[2];
  const size_t stride = (size_t)lengths[0];
  kvtf_cache_remove(cache, keys[0], sizeof keys, TEXT);
  GOOD(kvtf_peer_push(pair.client, pair.peer, keys[0], KVTF_KEY_BYTES, frames[0], stride,
                      (const uint8_t*)lengths, 8, (uint8_t*)results, 4, WAIT_MS, TEXT));
  uint8_t* const slots = malloc(2 * stride);
  REFUSED(
      NOT_FOUND, "",
      kvtf_peer_pull(pair.client, pair.peer, keys[0], 2 * KVTF_KEY_BYTES, slots, 2 * stride, (int64_t)stride,
                     (uint8_t*)got, sizeof got, (uint8_t*)results, sizeof results, WAIT_MS, TEXT));
  CHECK(results[0] == KVTF_OK && results[1] == KVTF_NOT_FOUND && got[0] == lengths[0]);
  CHECK(memcmp(slots, frames[0], stride) == 0);
  REFUSED(BUFFER_TOO_SMALL, "slots",
          kvtf_peer_pull(pair.client, pair.peer, keys[0], 2 * KVTF_KEY_BYTES, slots, stride, (int64_t)stride,
                         (uint8_t*)got, sizeof got, (uint8_t*)results, sizeof results, WAIT_MS, TEXT));
  REFUSED(
      BUFFER_TOO_SMALL, "lengths",
      kvtf_peer_pull(pair.client, pair.peer, keys[0], 2 * KVTF_KEY_BYTES, slots, 2 * stride, (int64_t)stride,
                     (uint8_t*)got, 15, (uint8_t*)results, sizeof results, WAIT_MS, TEXT));
  const int64_t pull = GOOD(
      kvtf_peer_submit_pull(pair.client, pair.peer, keys[0], KVTF_KEY_BYTES, (int64_t)stride, WAIT_MS, TEXT));
  GOOD(kvtf_operation_wait(pull, WAIT_MS, NONE, TEXT));
  CHECK(kvtf_operation_frame(pull, 0, slots, stride, TEXT) == (int64_t)stride);
  CHECK(memcmp(slots, frames[0], stride) == 0);
  free(slots);
  kvtf_operation_release(pull);
  REFUSED(INVALID_ARGUMENT, "stride",
          kvtf_peer_submit_pull(pair.client, pair.peer, keys[0], KVTF_KEY_BYTES, 0, WAIT_MS, TEXT));
  ClosePair(pair);
}

/* Polls the client until `parts` of the operation are in place, or it has ended. @return 1 at its end. */
static int AwaitParts(const pair_t* pair, int64_t operation, int64_t parts) {
  int64_t words[KVTF_COMPLETION_WORDS] = {0};
  for (int i = 0; i < 1000; ++i) {
    if (kvtf_event_wait(kvtf_node_event_fd(pair->client, TEXT), 100, TEXT) != 1) continue;
    if (kvtf_node_poll(pair->client, (uint8_t*)words, sizeof words, TEXT) <= 0) continue;
    CHECK(words[KVTF_COMPLETION_OPERATION] == operation);
    if (words[KVTF_COMPLETION_KIND] == KVTF_COMPLETION_DONE) return 1;
    if (words[KVTF_COMPLETION_ITEMS_OK] == parts) return 0;
  }
  CHECK(!"the part came");
  return 1;
}

static void Streams(void) {
  const pair_t pair = OpenPair();
  uint8_t* const whole = malloc((size_t)lengths[0]);
  const int64_t room = 2 * ((int64_t)lengths[0] + 64);
  const int64_t pull = GOOD(
      kvtf_peer_submit_pull_stream(pair.client, pair.peer, keys[0], KVTF_KEY_BYTES, room, 2, WAIT_MS, TEXT));
  const int64_t stream = GOOD(kvtf_stream_open(pair.server, keys[0], KVTF_KEY_BYTES, TEXT));
  REFUSED(ALREADY_EXISTS, "", kvtf_stream_open(pair.server, keys[0], KVTF_KEY_BYTES, TEXT));
  REFUSED(OUT_OF_RANGE, "0 parts", kvtf_operation_frame(pull, 0, whole, (size_t)lengths[0], TEXT));
  GOOD(kvtf_stream_append(stream, frames[0], (size_t)lengths[0], TEXT));
  CHECK(AwaitParts(&pair, pull, 1) == 0);
  CHECK(kvtf_operation_frame(pull, 0, whole, (size_t)lengths[0], TEXT) == (int64_t)lengths[0]);
  CHECK(memcmp(whole, frames[0], (size_t)lengths[0]) == 0);
  REFUSED(OUT_OF_RANGE, "1 parts", kvtf_operation_frame(pull, 1, whole, (size_t)lengths[0], TEXT));
  REFUSED(CORRUPT, "", kvtf_stream_append(stream, frames[0], (size_t)lengths[0] - 1, TEXT));
  GOOD(kvtf_stream_append(stream, frames[1], (size_t)lengths[1], TEXT));
  REFUSED(INVALID_ARGUMENT, "ok is 2", kvtf_stream_finish(stream, 2, TEXT));
  GOOD(kvtf_stream_finish(stream, 1, TEXT));
  GOOD(kvtf_operation_wait(pull, WAIT_MS, NONE, TEXT));
  CHECK(kvtf_operation_frame(pull, 1, whole, (size_t)lengths[0], TEXT) == (int64_t)lengths[1]);
  CHECK(memcmp(whole, frames[1], (size_t)lengths[1]) == 0);
  CHECK(kvtf_operation_results(pull, NONE, TEXT) == 0);
  kvtf_operation_release(pull);
  REFUSED(CLOSED, "", kvtf_stream_append(stream, frames[0], (size_t)lengths[0], TEXT));
  kvtf_stream_destroy(stream);
  kvtf_stream_destroy(stream);
  REFUSED(STALE_HANDLE, "", kvtf_stream_finish(stream, 1, TEXT));
  /* One that is forgotten is aborted; one that is forgotten by its puller ends. */
  for (int i = 0; i < 2; ++i) {
    const int64_t again = GOOD(kvtf_stream_open(pair.server, keys[1 + i], KVTF_KEY_BYTES, TEXT));
    const int64_t late = GOOD(kvtf_peer_submit_pull_stream(pair.client, pair.peer, keys[1 + i],
                                                           KVTF_KEY_BYTES, room, 2, WAIT_MS, TEXT));
    GOOD(kvtf_stream_append(again, frames[0], (size_t)lengths[0], TEXT));
    if (i == 0) {
      CHECK(AwaitParts(&pair, late, 1) == 0);
      kvtf_stream_destroy(again);
      REFUSED(CANCELLED, "", kvtf_operation_wait(late, WAIT_MS, NONE, TEXT));
      CHECK(kvtf_operation_frame(late, 0, whole, (size_t)lengths[0], TEXT) == (int64_t)lengths[0]);
    }
    kvtf_operation_release(late);
    kvtf_stream_destroy(again);
  }
  free(whole);
  REFUSED(
      INVALID_ARGUMENT, "parts 0",
      kvtf_peer_submit_pull_stream(pair.client, pair.peer, keys[0], KVTF_KEY_BYTES, room, 0, WAIT_MS, TEXT));
  REFUSED(INVALID_ARGUMENT, "key is 3", kvtf_stream_open(pair.server, keys[0], 3, TEXT));
  ClosePair(pair);
}

/* Threads that hold, wait for, cancel and release the same objects. */
static int64_t shared_codec, shared_operation;

static void* Race(void* argument) {
  const int worker = *(const int*)argument;
  uint8_t own[128];
  view_t view;
  ViewInit(&view, 1);
  for (int i = 0; i < 200; ++i) {
    if (i % 50 == worker) kvtf_codec_destroy(__atomic_load_n(&shared_codec, __ATOMIC_SEQ_CST));
    kvtf_codec_bound(__atomic_load_n(&shared_codec, __ATOMIC_SEQ_CST), VIEW_OF(&view), NONE, own, sizeof own);
    const int64_t operation = __atomic_load_n(&shared_operation, __ATOMIC_SEQ_CST);
    if (worker == 0) kvtf_operation_wait(operation, 1, NONE, own, sizeof own);
    if (worker == 1) kvtf_operation_cancel(operation, own, sizeof own);
    if (worker == 2) kvtf_operation_results(operation, NONE, own, sizeof own);
    if (worker == 3) {
      kvtf_operation_release(operation);
      __atomic_store_n(&shared_operation, SubmitPut(i % BLOCKS, own, sizeof own), __ATOMIC_SEQ_CST);
      const int64_t codec = kvtf_codec_create(model, NONE, NONE, NONE, own, sizeof own);
      kvtf_codec_destroy(__atomic_exchange_n(&shared_codec, codec, __ATOMIC_SEQ_CST));
    }
  }
  ViewEnd(&view);
  return NULL;
}

static void Threads(void) {
  enum { WORKERS = 4 };
  pthread_t threads[WORKERS];
  int numbers[WORKERS];
  for (int i = 0; i < WORKERS; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, Race, &numbers[i]) == 0);
  }
  for (int i = 0; i < WORKERS; ++i) pthread_join(threads[i], NULL);
  kvtf_operation_release(shared_operation);
  kvtf_codec_destroy(shared_codec);
}

/* Threads that end one operation together: each is given its end, whoever took the completion. */
enum { ENDERS = 4 };
static pthread_barrier_t together;

static void* End(void* argument) {
  const int worker = *(const int*)argument;
  uint8_t own[128];
  uint8_t completions[4 * KVTF_COMPLETION_BYTES];
  intptr_t wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    int64_t result = 0;
    pthread_barrier_wait(&together);
    if (worker == 0) {
      result = kvtf_operation_cancel(shared_operation, own, sizeof own);
    } else if (worker == 1) {
      result = kvtf_cache_poll(cache, completions, sizeof completions, own, sizeof own);
    } else {
      result = kvtf_operation_wait(shared_operation, WAIT_MS, NONE, own, sizeof own);
    }
    wrong += result < 0 && result != KVTF_CANCELLED;
    pthread_barrier_wait(&together);
    if (worker != 0) continue;
    kvtf_operation_release(shared_operation);
    shared_operation = SubmitPut(i % BLOCKS, own, sizeof own);
    /* Both orders: it ends before the others come, and after. */
    if (i % 2 == 0) sched_yield();
  }
  return (void*)wrong;
}

static void EndTogether(void) {
  pthread_t threads[ENDERS];
  int numbers[ENDERS];
  shared_operation = GOOD(SubmitPut(0, TEXT));
  CHECK(pthread_barrier_init(&together, NULL, ENDERS) == 0);
  for (int i = 0; i < ENDERS; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, End, &numbers[i]) == 0);
  }
  for (int i = 0; i < ENDERS; ++i) {
    void* wrong = NULL;
    pthread_join(threads[i], &wrong);
    if (wrong != NULL) printf("  worker %d: %d results\n", i, (int)(intptr_t)wrong);
    CHECK(wrong == NULL);
  }
  pthread_barrier_destroy(&together);
  kvtf_operation_release(shared_operation);
}

int main(void) {
  Open();
  RUN(Texts);
  RUN(Records);
  RUN(PutAndGet);
  RUN(ManyItems);
  RUN(StoreAndLoad);
  RUN(Operations);
  RUN(PullAndPush);
  RUN(Streams);
  RUN(Threads);
  RUN(EndTogether);
  Close();
  return Finish();
}
