/* Wrong arguments of cache, transfer, verifier and meter: the documented status, the field in the text, no
 * out-parameter touched. One argument is wrong at a time. */
#include <math.h>

#include "refused.h"

static kvt_status_t OpenCache(const char* url) {
  return kvt_cache_open(kit.runtime, url, strlen(url), &o.handle);
}

static void CacheUrls(void) {
  INVALID("url", kvt_cache_open(kit.runtime, NULL, 4, &o.handle));
  INVALID("url", kvt_cache_open(kit.runtime, "mem:", 0, &o.handle));
  INVALID("cache", kvt_cache_open(kit.runtime, "mem:", 4, NULL));
  REFUSED(KVT_ERR_UNSUPPORTED, "redis", OpenCache("redis://127.0.0.1:1"));
  INVALID("", OpenCache("no scheme here"));
  INVALID("capacity", OpenCache("mem:?capacity=lots"));
  INVALID("capacity", OpenCache("mem:?capacity=-1"));
  INVALID("capacity", OpenCache("mem:?capacity=99999999999TiB"));
  INVALID("colour", OpenCache("mem:?colour=red"));
  INVALID("", OpenCache("file:"));
}

static void CacheFunctions(void) {
  const kvt_view_t* view = &kit.rows.view;
  const kvt_cache_t cache = kit.cache;
  INVALID("timeout_ms", kvt_cache_close(cache, -1));
  INVALID("keys",
          kvt_cache_submit_put(cache, NULL, 1, kit.frame, &kit.frame_len_u64, o.results, 1000, &o.operation));
  INVALID("frames",
          kvt_cache_submit_put(cache, kit.keys, 1, NULL, &kit.frame_len_u64, o.results, 1000, &o.operation));
  INVALID("lengths",
          kvt_cache_submit_put(cache, kit.keys, 1, kit.frame, NULL, o.results, 1000, &o.operation));
  INVALID("results",
          kvt_cache_submit_put(cache, kit.keys, 1, kit.frame, &kit.frame_len_u64, NULL, 1000, &o.operation));
  INVALID("timeout_ms", kvt_cache_submit_put(cache, kit.keys, 1, kit.frame, &kit.frame_len_u64, o.results, -1,
                                             &o.operation));
  INVALID("operation",
          kvt_cache_submit_put(cache, kit.keys, 1, kit.frame, &kit.frame_len_u64, o.results, 1000, NULL));
  kvt_status_t (*const move[])(kvt_cache_t, kvt_codec_t, const kvt_view_t*, const kvt_frame_spec_t*, uint32_t,
                               const uint8_t*, size_t, kvt_status_t*, int64_t,
                               uint64_t*) = {kvt_cache_submit_store, kvt_cache_submit_load};
  for (int i = 0; i < 2; ++i) {
    const kvt_frame_spec_t* spec = &kit.spec;
    INVALID("view", move[i](cache, kit.codec, NULL, spec, 16, kit.keys, 4, o.results, 1000, &o.operation));
    INVALID("spec", move[i](cache, kit.codec, view, NULL, 16, kit.keys, 4, o.results, 1000, &o.operation));
    INVALID("block_tokens",
            move[i](cache, kit.codec, view, spec, 0, kit.keys, 4, o.results, 1000, &o.operation));
    INVALID("keys", move[i](cache, kit.codec, view, spec, 16, NULL, 4, o.results, 1000, &o.operation));
    INVALID("results", move[i](cache, kit.codec, view, spec, 16, kit.keys, 4, NULL, 1000, &o.operation));
    INVALID("timeout_ms",
            move[i](cache, kit.codec, view, spec, 16, kit.keys, 4, o.results, -1, &o.operation));
    INVALID("operation", move[i](cache, kit.codec, view, spec, 16, kit.keys, 4, o.results, 1000, NULL));
  }
  INVALID("count", kvt_cache_poll(cache, &o.completion, 1, NULL));
  INVALID("completions", kvt_cache_poll(cache, NULL, 1, &o.size));
  INVALID("timeout_ms", kvt_cache_wait(cache, 1, -1, &o.completion));
  REFUSED(KVT_ERR_NOT_FOUND, "operation", kvt_cache_wait(cache, UINT64_MAX, 0, &o.completion));
  REFUSED(KVT_ERR_NOT_FOUND, "operation", kvt_cache_cancel(cache, UINT64_MAX));
  INVALID("fd", kvt_cache_event_fd(cache, NULL));
  INVALID("keys", kvt_cache_match(cache, NULL, 1, &o.size));
  INVALID("matched", kvt_cache_match(cache, kit.keys, 1, NULL));
  static const uint8_t zero[KVT_KEY_BYTES];
  INVALID("key", kvt_cache_put(cache, NULL, kit.frame, kit.frame_len));
  INVALID("key 0", kvt_cache_put(cache, zero, kit.frame, kit.frame_len));
  INVALID("frame", kvt_cache_put(cache, kit.keys, NULL, kit.frame_len));
  INVALID("frame_len is 0", kvt_cache_put(cache, kit.keys, kit.frame, 0));
  INVALID("frame_len", kvt_cache_put(cache, kit.keys, kit.frame, SIZE_MAX));
  REFUSED(KVT_ERR_CORRUPT, "", kvt_cache_put(cache, kit.keys, kit.frame, kit.frame_len - 1));
  REFUSED(KVT_ERR_MISMATCH, "key", kvt_cache_put(cache, kit.keys + KVT_KEY_BYTES, kit.frame, kit.frame_len));
  INVALID("key", kvt_cache_get(cache, NULL, o.bytes, sizeof o.bytes, &o.size));
  INVALID("buf", kvt_cache_get(cache, kit.keys, NULL, 5, &o.size));
  INVALID("keys", kvt_cache_remove(cache, NULL, 1, &o.size));
  INVALID("stats", kvt_cache_stats(cache, NULL));
  size_t needed = 0;
  CHECK_STATUS(kvt_cache_get(cache, kit.keys, o.bytes, 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  CHECK(needed == kit.frame_len);
  uint8_t absent[KVT_KEY_BYTES] = {1};
  REFUSED(KVT_ERR_NOT_FOUND, "", kvt_cache_get(cache, absent, o.bytes, sizeof o.bytes, &o.size));
}

#define NODE_FIELD(want, text, change)                              \
  do {                                                              \
    kvt_node_options_t n;                                           \
    kvt_node_options_init(&n, sizeof n);                            \
    n.model = kit.model;                                            \
    change;                                                         \
    REFUSED(want, text, kvt_node_open(kit.runtime, &n, &o.handle)); \
  } while (0)
#define LISTEN(url) (n.listen = (url), n.listen_len = strlen(url))

static void NodeOptions(void) {
  kvt_node_options_t good;
  kvt_node_options_init(&good, sizeof good);
  good.model = kit.model;
  INVALID("NULL", kvt_node_open(kit.runtime, NULL, &o.handle));
  INVALID("node", kvt_node_open(kit.runtime, &good, NULL));
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "max_connections", n.max_connections = 0);
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "stall_ms", n.stall_ms = 99);
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "stall_ms", n.stall_ms = 600001);
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "max_frame_bytes", n.max_frame_bytes = 0);
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "reserved", n.reserved = 1);
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "insecure", LISTEN("tcp://0.0.0.0:0"));
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "port", LISTEN("tcp://127.0.0.1:70000"));
  NODE_FIELD(KVT_ERR_INVALID_ARGUMENT, "bandwidth", LISTEN("tcp://127.0.0.1:0?bandwidth=fast"));
  NODE_FIELD(KVT_ERR_UNSUPPORTED, "ucx", LISTEN("ucx://127.0.0.1:0"));
  NODE_FIELD(KVT_ERR_NOT_FOUND, "/nowhere", LISTEN("unix:/nowhere/kvartet.sock"));
  char url[256];
  size_t url_len = 0;
  CHECK_OK(kvt_node_url(kit.node, url, sizeof url - 1, &url_len));
  url[url_len] = 0;
  NODE_FIELD(KVT_ERR_ADDRESS_IN_USE, "127.0.0.1", LISTEN(url));
}

/* An operation over no items is fine: it ends at once, with KVT_OK. */
static void NoItems(void) {
  uint64_t operation = 0;
  kvt_completion_t done;
  CHECK_OK(kvt_cache_submit_put(kit.cache, NULL, 0, NULL, NULL, NULL, 1000, &operation));
  CHECK_OK(kvt_cache_wait(kit.cache, operation, 1000, &done));
  CHECK(done.items == 0 && done.items_ok == 0 && done.bytes == 0);
  CHECK_OK(kvt_peer_submit_pull(kit.peer, NULL, 0, NULL, 0, NULL, NULL, 1000, &operation));
  CHECK_OK(kvt_node_wait(kit.client, operation, 1000, &done));
  size_t count = 7;
  CHECK_OK(kvt_cache_match(kit.cache, NULL, 0, &count));
  CHECK(count == 0);
}

static void NodeFunctions(void) {
  INVALID("buf", kvt_node_url(kit.node, NULL, 5, &o.size));
  REFUSED(KVT_ERR_NOT_FOUND, "", kvt_node_url(kit.client, o.text, sizeof o.text, &o.size));
  REFUSED(KVT_ERR_ALREADY_EXISTS, "", kvt_node_serve(kit.node, kit.cache));
  INVALID("timeout_ms", kvt_node_close(kit.node, -1));
  INVALID("url", kvt_node_connect(kit.client, NULL, 4, 1000, &o.handle));
  INVALID("peer", kvt_node_connect(kit.client, "tcp://127.0.0.1:1", 17, 1000, NULL));
  INVALID("timeout_ms", kvt_node_connect(kit.client, "tcp://127.0.0.1:1", 17, -1, &o.handle));
  INVALID("insecure", kvt_node_connect(kit.client, "tcp://192.0.2.1:9", 17, 1000, &o.handle));
  REFUSED(KVT_ERR_PEER_DEAD, "127.0.0.1:1",
          kvt_node_connect(kit.client, "tcp://127.0.0.1:1", 17, 5000, &o.handle));
  INVALID("fd", kvt_node_event_fd(kit.node, NULL));
  INVALID("stats", kvt_node_stats(kit.node, NULL));
  INVALID("count", kvt_node_poll(kit.node, &o.completion, 1, NULL));
  INVALID("timeout_ms", kvt_node_wait(kit.node, 1, -1, &o.completion));
  REFUSED(KVT_ERR_NOT_FOUND, "operation", kvt_node_wait(kit.node, UINT64_MAX, 0, &o.completion));
  REFUSED(KVT_ERR_NOT_FOUND, "operation", kvt_node_cancel(kit.node, UINT64_MAX));
}

static void PeerFunctions(void) {
  const kvt_peer_t peer = kit.peer;
  INVALID("keys",
          kvt_peer_submit_pull(peer, NULL, 1, o.bytes, 4096, o.lengths, o.results, 1000, &o.operation));
  INVALID("base",
          kvt_peer_submit_pull(peer, kit.keys, 1, NULL, 4096, o.lengths, o.results, 1000, &o.operation));
  INVALID("lengths",
          kvt_peer_submit_pull(peer, kit.keys, 1, o.bytes, 4096, NULL, o.results, 1000, &o.operation));
  INVALID("results",
          kvt_peer_submit_pull(peer, kit.keys, 1, o.bytes, 4096, o.lengths, NULL, 1000, &o.operation));
  INVALID("timeout_ms",
          kvt_peer_submit_pull(peer, kit.keys, 1, o.bytes, 4096, o.lengths, o.results, -1, &o.operation));
  INVALID("operation",
          kvt_peer_submit_pull(peer, kit.keys, 1, o.bytes, 4096, o.lengths, o.results, 1000, NULL));
  INVALID("frames",
          kvt_peer_submit_push(peer, kit.keys, 1, NULL, &kit.frame_len_u64, o.results, 1000, &o.operation));
  INVALID("lengths", kvt_peer_submit_push(peer, kit.keys, 1, kit.frame, NULL, o.results, 1000, &o.operation));
  INVALID("key", kvt_peer_submit_pull_stream(peer, NULL, o.bytes, 4096, o.offsets, o.lengths, 4, 1000,
                                             &o.operation));
  INVALID("base", kvt_peer_submit_pull_stream(peer, kit.keys, NULL, 4096, o.offsets, o.lengths, 4, 1000,
                                              &o.operation));
  INVALID("offsets",
          kvt_peer_submit_pull_stream(peer, kit.keys, o.bytes, 4096, NULL, o.lengths, 4, 1000, &o.operation));
}

static void StreamFunctions(void) {
  INVALID("key", kvt_stream_open(kit.node, NULL, &o.handle));
  INVALID("stream", kvt_stream_open(kit.node, kit.keys + KVT_KEY_BYTES, NULL));
  REFUSED(KVT_ERR_ALREADY_EXISTS, "", kvt_stream_open(kit.node, kit.keys, &o.handle));
  INVALID("frame", kvt_stream_append(kit.stream, NULL, 100));
  REFUSED(KVT_ERR_CORRUPT, "", kvt_stream_append(kit.stream, kit.frame, kit.frame_len - 1));
}

#define VERIFIER_FIELD(text, change)                   \
  do {                                                 \
    kvt_verifier_options_t v = KitVerifierOptions();   \
    change;                                            \
    INVALID(text, kvt_verifier_create(&v, &o.handle)); \
  } while (0)

static void VerifierOptions(void) {
  const int32_t wild = 100;
  kvt_verifier_options_t good = KitVerifierOptions();
  INVALID("NULL", kvt_verifier_create(NULL, &o.handle));
  INVALID("verifier", kvt_verifier_create(&good, NULL));
  VERIFIER_FIELD("draft_length", v.draft_length = KVT_VERIFIER_MAX_DRAFT + 1);
  VERIFIER_FIELD("draft_max", (v.draft_length = 0, v.draft_max = KVT_VERIFIER_MAX_DRAFT + 1));
  VERIFIER_FIELD("draft_max", (v.draft_length = 0, v.draft_max = 0));
  VERIFIER_FIELD("fidelity", v.fidelity = 4);
  VERIFIER_FIELD("fidelity", v.fidelity = -1);
  VERIFIER_FIELD("margin", v.fidelity = KVT_FIDELITY_B);
  VERIFIER_FIELD("margin", (v.fidelity = KVT_FIDELITY_B, v.margin = NAN));
  VERIFIER_FIELD("first_token", v.first_token = 100);
  VERIFIER_FIELD("first_token", v.first_token = -1);
  VERIFIER_FIELD("vocabulary", v.vocabulary = 0);
  VERIFIER_FIELD("max_tokens", v.max_tokens = 0);
  VERIFIER_FIELD("eos", v.eos_count = 1);
  VERIFIER_FIELD("eos", (v.eos = &wild, v.eos_count = 1));
  VERIFIER_FIELD("full_ready", v.full_ready = 2);
  VERIFIER_FIELD("reserved", v.reserved[0] = 1);
  kvt_verifier_options_init(NULL, sizeof good);
}

static void VerifierFunctions(void) {
  const kvt_verifier_t verifier = kit.verifier;
  const int32_t wild[2] = {1, 100};
  INVALID("action", kvt_verifier_next(verifier, NULL));
  INVALID("stats", kvt_verifier_stats(verifier, NULL));
  kvt_action_t action;
  action.struct_size = sizeof action;
  CHECK_OK(kvt_verifier_next(verifier, &action));
  while (action.kind == KVT_ACTION_COMMIT) {
    CHECK_OK(kvt_verifier_committed(verifier));
    CHECK_OK(kvt_verifier_next(verifier, &action));
  }
  CHECK(action.kind == KVT_ACTION_DRAFT && action.n == 4);
  INVALID("DRAFT", kvt_verifier_committed(verifier));
  INVALID("DRAFT", kvt_verifier_rolled_back(verifier));
  INVALID("DRAFT", kvt_verifier_verified(verifier, wild, NULL, 1, 1));
  INVALID("DRAFT", kvt_verifier_rechecked(verifier, 1, 1));
  INVALID("tokens", kvt_verifier_drafted(verifier, NULL, 1, 1));
  INVALID("100", kvt_verifier_drafted(verifier, wild, 2, 1));
  INVALID("count", kvt_verifier_drafted(verifier, kit.tokens, 5, 1));
  kvt_action_t again;
  again.struct_size = sizeof again;
  CHECK_OK(kvt_verifier_next(verifier, &again));
  CHECK(again.kind == action.kind && again.n == action.n && again.pending == action.pending);
  const int32_t draft[2] = {1, 2};
  CHECK_OK(kvt_verifier_drafted(verifier, draft, 2, 1));
  CHECK_OK(kvt_verifier_next(verifier, &again));
  CHECK(again.kind == KVT_ACTION_VERIFY && again.n == 2);
  const float nan_gaps[3] = {1, NAN, 1};
  const int32_t rows[3] = {1, 2, 3};
  INVALID("count", kvt_verifier_verified(verifier, rows, NULL, 2, 1));
  INVALID("tokens", kvt_verifier_verified(verifier, NULL, NULL, 3, 1));
  REFUSED(KVT_ERR_CORRUPT, "row", kvt_verifier_verified(verifier, rows, nan_gaps, 3, 1));
  CHECK_OK(kvt_verifier_verified(verifier, rows, NULL, 3, 1));
}

static void Fidelity(void) {
  float rows[4] = {1, 2, 3, 4};
  float bad[4] = {1, NAN, 3, 4};
  const uint32_t widths[2] = {1, 2}, places[2] = {0, 1};
  INVALID("alone", kvt_fidelity_classify(NULL, rows, 2, 2, widths, places, &o.level, &o.margin));
  INVALID("batched", kvt_fidelity_classify(rows, NULL, 2, 2, widths, places, &o.level, &o.margin));
  INVALID("rows", kvt_fidelity_classify(rows, rows, 1, 2, widths, places, &o.level, &o.margin));
  INVALID("vocabulary", kvt_fidelity_classify(rows, rows, 2, 0, widths, places, &o.level, &o.margin));
  INVALID("widths", kvt_fidelity_classify(rows, rows, 2, 2, NULL, places, &o.level, &o.margin));
  INVALID("places", kvt_fidelity_classify(rows, rows, 2, 2, widths, NULL, &o.level, &o.margin));
  INVALID("level", kvt_fidelity_classify(rows, rows, 2, 2, widths, places, NULL, &o.margin));
  INVALID("", kvt_fidelity_classify(rows, bad, 2, 2, widths, places, &o.level, &o.margin));
}

static void Meter(void) {
  static const char long_way[65] = {'a'};
  const kvt_meter_t meter = kit.meter;
  INVALID("meter", kvt_meter_create(kit.runtime, NULL));
  INVALID("way", kvt_request_begin(meter, NULL, 3, &o.number));
  INVALID("way", kvt_request_begin(meter, long_way, sizeof long_way, &o.number));
  INVALID("request", kvt_request_begin(meter, "raw", 3, NULL));
  INVALID("part", kvt_request_part(meter, kit.request, 0));
  INVALID("part", kvt_request_part(meter, kit.request, 8));
  INVALID("counter", kvt_request_count(meter, kit.request, 0, 1));
  INVALID("counter", kvt_request_count(meter, kit.request, 11, 1));
  INVALID("from", kvt_request_attribute(meter, kit.request, 9, KVT_PART_QUEUE, 1));
  INVALID("to", kvt_request_attribute(meter, kit.request, KVT_PART_QUEUE, 9, 1));
  REFUSED(KVT_ERR_OUT_OF_RANGE, "",
          kvt_request_attribute(meter, kit.request, KVT_PART_DECODE, KVT_PART_QUEUE, UINT64_MAX));
  REFUSED(KVT_ERR_NOT_FOUND, "request", kvt_request_part(meter, UINT64_MAX, KVT_PART_QUEUE));
  REFUSED(KVT_ERR_NOT_FOUND, "request", kvt_request_first_token(meter, UINT64_MAX));
  REFUSED(KVT_ERR_NOT_FOUND, "request", kvt_request_end(meter, UINT64_MAX));
  INVALID("buf", kvt_meter_json(meter, NULL, 5, &o.size));
  INVALID("buf", kvt_meter_advice(meter, NULL, 5, &o.size));
}

int main(void) {
  KitOpen(&kit);
  RUN(CacheUrls);
  RUN(CacheFunctions);
  RUN(NoItems);
  RUN(NodeOptions);
  RUN(NodeFunctions);
  RUN(PeerFunctions);
  RUN(StreamFunctions);
  RUN(VerifierOptions);
  RUN(VerifierFunctions);
  RUN(Fidelity);
  RUN(Meter);
  KitClose(&kit);
  return Finish();
}
