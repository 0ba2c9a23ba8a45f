/* Every function that takes a handle refuses null, invented, stale and wrong-typed ones, by status and text,
 * and leaves its out-parameters alone. */
#include "outs.h"

enum { RUNTIME, MODEL, CODEC, CACHE, NODE, PEER, STREAM, VERIFIER, METER, TYPES };

static const char* const kTypeNames[TYPES] = {"runtime", "model",  "codec",    "cache", "node",
                                              "peer",    "stream", "verifier", "meter"};

typedef kvt_status_t (*call_fn)(kit_t* k, uint64_t h, outs_t* o);

#define CALL(name, call)                                      \
  static kvt_status_t name(kit_t* k, uint64_t h, outs_t* o) { \
    (void)k;                                                  \
    (void)o;                                                  \
    return call;                                              \
  }

static const kvt_key_options_t* KeyOptions(void) {
  static kvt_key_options_t options;
  kvt_key_options_init(&options, sizeof options);
  return &options;
}

static const kvt_codec_options_t* CodecOptions(void) {
  static kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  return &options;
}

#define WAIT KIT_WAIT_MS
CALL(RuntimeClose, kvt_runtime_close(h, WAIT))
CALL(RuntimeMemory, kvt_runtime_memory_used(h, &o->number))
CALL(RuntimeCache, kvt_cache_open(h, "mem:", 4, &o->handle))
CALL(RuntimeMeter, kvt_meter_create(h, &o->handle))
CALL(ModelFingerprint, kvt_model_fingerprint(h, o->bytes))
CALL(ModelCanonical, kvt_model_canonical(h, o->bytes, sizeof o->bytes, &o->size))
CALL(ModelCompareLeft, kvt_model_compare(h, k->model))
CALL(ModelCompareRight, kvt_model_compare(k->model, h))
CALL(ModelShard, kvt_shard_init(h, &o->shard, sizeof o->shard))
CALL(ModelRope, kvt_model_rope(h, &k->rows.view, 0, 1, 1))
CALL(ModelKeys, kvt_keys_compute(h, KeyOptions(), k->tokens, KIT_TOKENS, o->bytes, sizeof o->bytes, &o->size))
CALL(ModelCodec, kvt_codec_create(h, CodecOptions(), &o->handle))
CALL(CodecBound, kvt_codec_bound(h, &k->rows.view, &k->spec, &o->number))
CALL(CodecEncode,
     kvt_codec_encode(h, &k->rows.view, &k->spec, o->bytes, sizeof o->bytes, &o->size, &o->report))
CALL(CodecDecode, kvt_codec_decode(h, k->frame, k->frame_len, &k->spec, &k->rows.view, &o->report))
CALL(CodecStore, kvt_cache_submit_store(k->cache, h, &k->rows.view, &k->spec, KIT_BLOCK, k->keys, KIT_BLOCKS,
                                        o->results, WAIT, &o->operation))
CALL(CodecLoad, kvt_cache_submit_load(k->cache, h, &k->rows.view, &k->spec, KIT_BLOCK, k->keys, KIT_BLOCKS,
                                      o->results, WAIT, &o->operation))
CALL(CacheClose, kvt_cache_close(h, WAIT))
CALL(CachePut,
     kvt_cache_submit_put(h, k->keys, 1, k->frame, &k->frame_len_u64, o->results, WAIT, &o->operation))
CALL(CacheStore, kvt_cache_submit_store(h, k->codec, &k->rows.view, &k->spec, KIT_BLOCK, k->keys, KIT_BLOCKS,
                                        o->results, WAIT, &o->operation))
CALL(CacheLoad, kvt_cache_submit_load(h, k->codec, &k->rows.view, &k->spec, KIT_BLOCK, k->keys, KIT_BLOCKS,
                                      o->results, WAIT, &o->operation))
CALL(CachePoll, kvt_cache_poll(h, &o->completion, 1, &o->size))
CALL(CacheWait, kvt_cache_wait(h, 1, WAIT, &o->completion))
CALL(CacheCancel, kvt_cache_cancel(h, 1))
CALL(CacheEventFd, kvt_cache_event_fd(h, &o->fd))
CALL(CacheMatch, kvt_cache_match(h, k->keys, KIT_BLOCKS, &o->size))
CALL(CachePutOne, kvt_cache_put(h, k->keys, k->frame, k->frame_len))
CALL(CacheGet, kvt_cache_get(h, k->keys, o->bytes, sizeof o->bytes, &o->size))
CALL(CacheRemove, kvt_cache_remove(h, k->keys, KIT_BLOCKS, &o->size))
CALL(CacheStats, kvt_cache_stats(h, &o->cache_stats))
CALL(CacheServe, kvt_node_serve(k->client, h))
CALL(NodeUrl, kvt_node_url(h, o->text, sizeof o->text, &o->size))
CALL(NodeServe, kvt_node_serve(h, k->cache))
CALL(NodeClose, kvt_node_close(h, WAIT))
CALL(NodeConnect, kvt_node_connect(h, "tcp://127.0.0.1:1", 17, WAIT, &o->handle))
CALL(NodeStream, kvt_stream_open(h, k->keys + KVT_KEY_BYTES, &o->handle))
CALL(NodePoll, kvt_node_poll(h, &o->completion, 1, &o->size))
CALL(NodeWait, kvt_node_wait(h, 1, WAIT, &o->completion))
CALL(NodeCancel, kvt_node_cancel(h, 1))
CALL(NodeEventFd, kvt_node_event_fd(h, &o->fd))
CALL(NodeStats, kvt_node_stats(h, &o->node_stats))
CALL(PeerPull, kvt_peer_submit_pull(h, k->keys, 1, o->bytes, sizeof o->bytes, o->lengths, o->results, WAIT,
                                    &o->operation))
CALL(PeerPush,
     kvt_peer_submit_push(h, k->keys, 1, k->frame, &k->frame_len_u64, o->results, WAIT, &o->operation))
CALL(PeerPullStream, kvt_peer_submit_pull_stream(h, k->keys, o->bytes, sizeof o->bytes, o->offsets,
                                                 o->lengths, 1, WAIT, &o->operation))
CALL(StreamAppend, kvt_stream_append(h, k->frame, k->frame_len))
CALL(StreamFinish, kvt_stream_finish(h, 0))
CALL(VerifierNext, kvt_verifier_next(h, &o->action))
CALL(VerifierDrafted, kvt_verifier_drafted(h, k->tokens, 1, 1))
CALL(VerifierLoaded, kvt_verifier_loaded(h, KVT_OK, 1))
CALL(VerifierVerified, kvt_verifier_verified(h, k->tokens, NULL, 1, 1))
CALL(VerifierRechecked, kvt_verifier_rechecked(h, 1, 1))
CALL(VerifierRolledBack, kvt_verifier_rolled_back(h))
CALL(VerifierCommitted, kvt_verifier_committed(h))
CALL(VerifierCancel, kvt_verifier_cancel(h))
CALL(VerifierStats, kvt_verifier_stats(h, &o->verifier_stats))
CALL(RequestBegin, kvt_request_begin(h, "raw", 3, &o->number))
CALL(RequestPart, kvt_request_part(h, k->request, KVT_PART_QUEUE))
CALL(RequestAttribute, kvt_request_attribute(h, k->request, KVT_PART_QUEUE, KVT_PART_OTHER, 0))
CALL(RequestFirstToken, kvt_request_first_token(h, k->request))
CALL(RequestCount, kvt_request_count(h, k->request, KVT_COUNTER_CHECKSUMS, 1))
CALL(RequestEnd, kvt_request_end(h, k->request))
CALL(MeterJson, kvt_meter_json(h, o->text, sizeof o->text, &o->size))
CALL(MeterAdvice, kvt_meter_advice(h, o->text, sizeof o->text, &o->size))

static kvt_status_t NodeOptionsHandle(kit_t* k, uint64_t runtime, uint64_t model, outs_t* o) {
  kvt_node_options_t options;
  kvt_node_options_init(&options, sizeof options);
  options.model = model;
  memcpy(options.namespace_digest, k->digest, sizeof k->digest);
  return kvt_node_open(runtime, &options, &o->handle);
}
CALL(RuntimeNode, NodeOptionsHandle(k, h, k->model, o))
CALL(ModelNode, NodeOptionsHandle(k, k->runtime, h, o))

typedef struct entry {
  const char* name;
  int type;
  call_fn call;
} entry_t;

#define ENTRY(type, name) \
  { #name, type, name }
static const entry_t kEntries[] = {
    ENTRY(RUNTIME, RuntimeClose),
    ENTRY(RUNTIME, RuntimeMemory),
    ENTRY(RUNTIME, RuntimeCache),
    ENTRY(RUNTIME, RuntimeMeter),
    ENTRY(RUNTIME, RuntimeNode),
    ENTRY(MODEL, ModelFingerprint),
    ENTRY(MODEL, ModelCanonical),
    ENTRY(MODEL, ModelCompareLeft),
    ENTRY(MODEL, ModelCompareRight),
    ENTRY(MODEL, ModelShard),
    ENTRY(MODEL, ModelRope),
    ENTRY(MODEL, ModelKeys),
    ENTRY(MODEL, ModelCodec),
    ENTRY(MODEL, ModelNode),
    ENTRY(CODEC, CodecBound),
    ENTRY(CODEC, CodecEncode),
    ENTRY(CODEC, CodecDecode),
    ENTRY(CODEC, CodecStore),
    ENTRY(CODEC, CodecLoad),
    ENTRY(CACHE, CacheClose),
    ENTRY(CACHE, CachePut),
    ENTRY(CACHE, CacheStore),
    ENTRY(CACHE, CacheLoad),
    ENTRY(CACHE, CachePoll),
    ENTRY(CACHE, CacheWait),
    ENTRY(CACHE, CacheCancel),
    ENTRY(CACHE, CacheEventFd),
    ENTRY(CACHE, CacheMatch),
    ENTRY(CACHE, CachePutOne),
    ENTRY(CACHE, CacheGet),
    ENTRY(CACHE, CacheRemove),
    ENTRY(CACHE, CacheStats),
    ENTRY(CACHE, CacheServe),
    ENTRY(NODE, NodeUrl),
    ENTRY(NODE, NodeServe),
    ENTRY(NODE, NodeClose),
    ENTRY(NODE, NodeConnect),
    ENTRY(NODE, NodeStream),
    ENTRY(NODE, NodePoll),
    ENTRY(NODE, NodeWait),
    ENTRY(NODE, NodeCancel),
    ENTRY(NODE, NodeEventFd),
    ENTRY(NODE, NodeStats),
    ENTRY(PEER, PeerPull),
    ENTRY(PEER, PeerPush),
    ENTRY(PEER, PeerPullStream),
    ENTRY(STREAM, StreamAppend),
    ENTRY(STREAM, StreamFinish),
    ENTRY(VERIFIER, VerifierNext),
    ENTRY(VERIFIER, VerifierDrafted),
    ENTRY(VERIFIER, VerifierLoaded),
    ENTRY(VERIFIER, VerifierVerified),
    ENTRY(VERIFIER, VerifierRechecked),
    ENTRY(VERIFIER, VerifierRolledBack),
    ENTRY(VERIFIER, VerifierCommitted),
    ENTRY(VERIFIER, VerifierCancel),
    ENTRY(VERIFIER, VerifierStats),
    ENTRY(METER, RequestBegin),
    ENTRY(METER, RequestPart),
    ENTRY(METER, RequestAttribute),
    ENTRY(METER, RequestFirstToken),
    ENTRY(METER, RequestCount),
    ENTRY(METER, RequestEnd),
    ENTRY(METER, MeterJson),
    ENTRY(METER, MeterAdvice),
};
enum { ENTRIES = sizeof kEntries / sizeof kEntries[0] };

static kit_t kit;   /* live */
static kit_t stale; /* everything in it was destroyed */

static void HandlesOf(const kit_t* k, uint64_t handles[TYPES]) {
  handles[RUNTIME] = k->runtime;
  handles[MODEL] = k->model;
  handles[CODEC] = k->codec;
  handles[CACHE] = k->cache;
  handles[NODE] = k->node;
  handles[PEER] = k->peer;
  handles[STREAM] = k->stream;
  handles[VERIFIER] = k->verifier;
  handles[METER] = k->meter;
}

/* Calls every entry with handle(entry), wants `want` and, in the text, the type's name. */
static void Refused(const entry_t* entry, uint64_t handle, kvt_status_t want) {
  outs_t outs;
  OutsInit(&outs);
  const kvt_status_t got = entry->call(&kit, handle, &outs);
  if (got != want || strstr(LastText(), kTypeNames[entry->type]) == NULL) {
    printf("  %s(handle %llx): %s, wanted %s and '%s' in: %s\n", entry->name, (unsigned long long)handle,
           kvt_status_name(got), kvt_status_name(want), kTypeNames[entry->type], LastText());
    CHECK(!"a handle was not refused as documented");
  }
  if (!OutsUntouched(&outs)) {
    printf("  %s(handle %llx) wrote to an out-parameter\n", entry->name, (unsigned long long)handle);
    CHECK(!"an out-parameter was touched on failure");
  }
}

static void NullHandle(void) {
  for (int i = 0; i < ENTRIES; ++i) Refused(&kEntries[i], 0, KVT_ERR_STALE_HANDLE);
}

static void InventedHandle(void) {
  uint64_t live[TYPES];
  HandlesOf(&kit, live);
  for (int i = 0; i < ENTRIES; ++i) {
    const uint64_t real = live[kEntries[i].type];
    const uint64_t invented[] = {1,
                                 UINT64_MAX,
                                 INT64_MAX,
                                 real ^ ((uint64_t)1 << 32),  /* another generation */
                                 real ^ ((uint64_t)1 << 31),  /* another slot */
                                 real ^ ((uint64_t)1 << 63)}; /* the bit that is always 0 */
    for (size_t j = 0; j < sizeof invented / sizeof invented[0]; ++j)
      Refused(&kEntries[i], invented[j], KVT_ERR_STALE_HANDLE);
  }
}

static void StaleHandle(void) {
  uint64_t dead[TYPES];
  HandlesOf(&stale, dead);
  for (int i = 0; i < ENTRIES; ++i) Refused(&kEntries[i], dead[kEntries[i].type], KVT_ERR_STALE_HANDLE);
}

static void WrongHandle(void) {
  uint64_t live[TYPES];
  HandlesOf(&kit, live);
  for (int i = 0; i < ENTRIES; ++i)
    for (int type = 0; type < TYPES; ++type)
      if (type != kEntries[i].type) Refused(&kEntries[i], live[type], KVT_ERR_WRONG_HANDLE);
}

/* destroy takes 0, stale, invented and wrong-typed ids, and ends nothing by them. */
static void DestroyTakesAnything(void) {
  static void (*const destroy[TYPES])(uint64_t) = {
      kvt_runtime_destroy, kvt_model_destroy,  kvt_codec_destroy,    kvt_cache_destroy, kvt_node_destroy,
      kvt_peer_destroy,    kvt_stream_destroy, kvt_verifier_destroy, kvt_meter_destroy};
  uint64_t live[TYPES], dead[TYPES];
  HandlesOf(&kit, live);
  HandlesOf(&stale, dead);
  for (int type = 0; type < TYPES; ++type) {
    destroy[type](0);
    destroy[type](UINT64_MAX);
    destroy[type](dead[type]);
    destroy[type](dead[type]);
    for (int other = 0; other < TYPES; ++other)
      if (other != type) destroy[type](live[other]);
  }
  outs_t outs;
  OutsInit(&outs);
  CHECK_OK(RuntimeMemory(&kit, kit.runtime, &outs));
  CHECK_OK(ModelFingerprint(&kit, kit.model, &outs));
  CHECK_OK(CodecBound(&kit, kit.codec, &outs));
  CHECK_OK(CacheStats(&kit, kit.cache, &outs));
  CHECK_OK(NodeStats(&kit, kit.node, &outs));
  CHECK_OK(PeerPush(&kit, kit.peer, &outs));
  CHECK_OK(kvt_node_cancel(kit.client, outs.operation));
  CHECK_OK(kvt_stream_append(kit.stream, kit.frame, kit.frame_len));
  CHECK_OK(VerifierStats(&kit, kit.verifier, &outs));
  CHECK_OK(kvt_request_count(kit.meter, kit.request, KVT_COUNTER_CHECKSUMS, 1));
}

static void HandlesArePositive(void) {
  uint64_t live[TYPES];
  HandlesOf(&kit, live);
  for (int type = 0; type < TYPES; ++type) CHECK(live[type] != 0 && (live[type] >> 63) == 0);
}

int main(void) {
  KitOpen(&stale);
  KitClose(&stale);
  KitOpen(&kit);
  RUN(NullHandle);
  RUN(InventedHandle);
  RUN(StaleHandle);
  RUN(WrongHandle);
  RUN(DestroyTakesAnything);
  RUN(HandlesArePositive);
  KitClose(&kit);
  return Finish();
}
