/* The program of docs/guide.md, in parts. */
#include <kvartet/kvartet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* [check] */
static void Check(kvt_status_t status, const char* what) {
  char text[KVT_ERROR_TEXT_MAX + 1] = "";
  if (status == KVT_OK) return;
  kvt_last_error(text, KVT_ERROR_TEXT_MAX, NULL);
  fprintf(stderr, "%s: %s: %s\n", what, kvt_status_name(status), text);
  exit(1);
}
/* [/check] */

enum {
  LAYERS = 2,
  HEADS = 2,
  DIM = 64,
  TOKENS = 64,
  BLOCK = 16,
  BLOCKS = TOKENS / BLOCK,
  ROW = HEADS * DIM * 2
};
static uint8_t kv[LAYERS * 2][TOKENS * ROW]; /* an engine's memory: K and V of each layer */
static uint8_t slots[BLOCKS][64 * 1024];

int main(void) {
  for (size_t i = 0; i < sizeof kv; ++i) ((uint8_t*)kv)[i] = (uint8_t)(i % 2 == 0 ? i * 7 : 0x3c);

  /* [runtime] */
  if (kvt_abi_version() >> 16 != KVT_ABI_VERSION >> 16) return 1;
  kvt_runtime_options_t threads;
  kvt_runtime_options_init(&threads, sizeof threads);
  threads.threads = 2;
  kvt_runtime_t runtime;
  Check(kvt_runtime_create(&threads, &runtime), "runtime");
  /* [/runtime] */

  /* [model] */
  kvt_model_options_t about;
  kvt_model_options_init(&about, sizeof about);
  about.model_id = (const uint8_t*)"sha256 of the weights file"; /* 1 to 64 bytes that you choose */
  about.model_id_len = 26;
  about.layers = LAYERS;
  about.kv_heads = HEADS;
  about.k_dim = DIM;
  about.v_dim = DIM;
  about.element = KVT_ELEMENT_F16;
  about.rope_style = KVT_ROPE_INTERLEAVED;
  about.rope_dims = DIM;
  about.rope_base = 10000;
  kvt_model_t model;
  Check(kvt_model_create(&about, &model), "model");
  /* [/model] */

  /* [view] */
  void* bases[LAYERS * 2]; /* per layer: K, V */
  for (int i = 0; i < LAYERS * 2; ++i) bases[i] = kv[i];
  kvt_view_t view;
  kvt_view_init(&view, sizeof view);
  view.element = KVT_ELEMENT_F16;
  view.layer_end = LAYERS;
  view.head_end = HEADS;
  view.tokens = TOKENS;
  view.bases = bases;
  view.base_count = LAYERS * 2;
  for (int stream = 0; stream < 2; ++stream) {
    view.token_stride[stream] = ROW;
    view.head_stride[stream] = DIM * 2;
    view.element_stride[stream] = 2;
  }
  /* [/view] */

  /* [keys] */
  int32_t tokens[TOKENS]; /* from your tokenizer */
  for (int i = 0; i < TOKENS; ++i) tokens[i] = 100 + i;
  kvt_key_options_t naming;
  kvt_key_options_init(&naming, sizeof naming);
  naming.ns = (const uint8_t*)"tenant-1";
  naming.ns_len = 8;
  uint8_t keys[BLOCKS * KVT_KEY_BYTES];
  Check(kvt_keys_compute(model, &naming, tokens, TOKENS, keys, sizeof keys, NULL), "keys");
  /* [/keys] */

  /* [store] */
  kvt_codec_options_t coding;
  kvt_codec_options_init(&coding, sizeof coding);
  coding.name = "int8";
  coding.name_len = 4;
  kvt_codec_t codec;
  Check(kvt_codec_create(model, &coding, &codec), "codec");

  kvt_cache_t cache;
  const char place[] = "file:guide-cache?capacity=1GiB";
  Check(kvt_cache_open(runtime, place, sizeof place - 1, &cache), "open");

  kvt_frame_spec_t spec; /* what every frame carries and every reader demands */
  kvt_frame_spec_init(&spec, sizeof spec);
  Check(kvt_namespace_digest(naming.ns, naming.ns_len, NULL, 0, spec.namespace_digest), "namespace");
  kvt_status_t results[BLOCKS];
  uint64_t operation;
  Check(kvt_cache_submit_store(cache, codec, &view, &spec, BLOCK, keys, BLOCKS, results, 5000, &operation),
        "store");
  Check(kvt_cache_wait(cache, operation, 5000, NULL), "store");
  /* [/store] */

  /* [load] */
  size_t matched = 0;
  Check(kvt_cache_match(cache, keys, BLOCKS, &matched), "match");
  if (matched > 0) {
    Check(kvt_cache_submit_load(cache, codec, &view, &spec, BLOCK, keys, matched, results, 5000, &operation),
          "load");
    kvt_completion_t done;
    kvt_status_t status = kvt_cache_wait(cache, operation, 5000, &done);
    if (status != KVT_OK) printf("only %llu blocks are usable\n", (unsigned long long)done.items_ok);
  }
  /* the engine prefills tokens from matched * BLOCK on */
  /* [/load] */
  if (matched != BLOCKS) return 1;

  /* [serve] */
  kvt_node_options_t endpoint;
  kvt_node_options_init(&endpoint, sizeof endpoint);
  endpoint.model = model;
  memcpy(endpoint.namespace_digest, spec.namespace_digest, sizeof spec.namespace_digest);
  endpoint.listen = "tcp://127.0.0.1:0"; /* port 0: a free one */
  endpoint.listen_len = strlen(endpoint.listen);
  kvt_node_t server;
  Check(kvt_node_open(runtime, &endpoint, &server), "listen");
  Check(kvt_node_serve(server, cache), "serve");
  char url[256];
  size_t url_len = 0;
  Check(kvt_node_url(server, url, sizeof url, &url_len), "url");
  /* [/serve] */

  /* [pull] */
  endpoint.listen = NULL; /* a client only */
  endpoint.listen_len = 0;
  kvt_node_t client;
  kvt_peer_t peer;
  Check(kvt_node_open(runtime, &endpoint, &client), "client");
  Check(kvt_node_connect(client, url, url_len, 2000, &peer), "connect");
  uint64_t lengths[BLOCKS];
  Check(
      kvt_peer_submit_pull(peer, keys, BLOCKS, slots[0], sizeof slots[0], lengths, results, 5000, &operation),
      "pull");
  Check(kvt_node_wait(client, operation, 5000, NULL), "pull");
  for (int i = 0; i < BLOCKS; ++i) {
    spec.token_begin = (uint64_t)i * BLOCK;
    spec.token_count = BLOCK;
    memcpy(spec.key, keys + i * KVT_KEY_BYTES, KVT_KEY_BYTES);
    Check(kvt_codec_decode(codec, slots[i], lengths[i], &spec, &view, NULL), "decode");
  }
  /* [/pull] */

  /* [meter] */
  kvt_meter_t meter;
  uint64_t request;
  Check(kvt_meter_create(runtime, &meter), "meter");
  Check(kvt_request_begin(meter, "pulled", 6, &request), "begin");
  Check(kvt_request_part(meter, request, KVT_PART_TRANSFER), "transfer begins");
  Check(kvt_request_part(meter, request, KVT_PART_DECODE), "decoding begins");
  Check(kvt_request_first_token(meter, request), "first token");
  Check(kvt_request_count(meter, request, KVT_COUNTER_BYTES_MOVED, lengths[0] * BLOCKS), "count");
  Check(kvt_request_end(meter, request), "end");
  char json[8192];
  size_t json_len = 0;
  Check(kvt_meter_json(meter, json, sizeof json, &json_len), "json");
  printf("%.*s\n", (int)json_len, json);
  /* [/meter] */

  /* [end] */
  kvt_meter_destroy(meter);
  kvt_node_destroy(client); /* with its peers */
  kvt_node_destroy(server);
  Check(kvt_cache_close(cache, 5000), "close"); /* flushes */
  kvt_cache_destroy(cache);
  kvt_codec_destroy(codec);
  kvt_model_destroy(model);
  kvt_runtime_destroy(runtime);
  /* [/end] */
  return 0;
}
