#include "kit.h"

static const uint8_t kModelId[] = "kvartet abi test model";

void RowsInit(rows_t* rows, uint32_t seed) {
  memset(rows, 0, sizeof *rows);
  for (int plane = 0; plane < KIT_LAYERS * 2; ++plane) {
    rows->bases[plane] = rows->data[plane];
    for (size_t i = 0; seed != 0 && i < KIT_PLANE_BYTES; i += 2) {
      seed = seed * 1664525u + 1013904223u;
      /* An f16 of magnitude 0.5 to 2: the exponent is one of two values, so never NaN or infinite. */
      const uint32_t bits =
          ((seed >> 31) << 15) | ((14u + ((seed >> 30) & 1u)) << 10) | ((seed >> 8) & 0x3ffu);
      rows->data[plane][i] = (uint8_t)bits;
      rows->data[plane][i + 1] = (uint8_t)(bits >> 8);
    }
  }
  kvt_view_init(&rows->view, sizeof rows->view);
  rows->view.element = KVT_ELEMENT_F16;
  rows->view.layer_end = KIT_LAYERS;
  rows->view.head_end = KIT_HEADS;
  rows->view.bases = rows->bases;
  rows->view.base_count = KIT_LAYERS * 2;
  for (int stream = 0; stream < 2; ++stream) {
    rows->view.token_stride[stream] = KIT_ROW_BYTES;
    rows->view.head_stride[stream] = KIT_DIM * 2;
    rows->view.element_stride[stream] = 2;
  }
  rows->view.tokens = KIT_TOKENS;
}

kvt_model_options_t KitModelOptions(void) {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = kModelId;
  options.model_id_len = sizeof kModelId;
  options.layers = KIT_LAYERS;
  options.kv_heads = KIT_HEADS;
  options.k_dim = KIT_DIM;
  options.v_dim = KIT_DIM;
  options.rope_style = KVT_ROPE_INTERLEAVED;
  options.rope_dims = KIT_DIM;
  options.rope_base = 10000;
  return options;
}

kvt_verifier_options_t KitVerifierOptions(void) {
  kvt_verifier_options_t options;
  kvt_verifier_options_init(&options, sizeof options);
  options.draft_length = 4;
  options.fidelity = KVT_FIDELITY_C;
  options.first_token = 7;
  options.vocabulary = 100;
  options.prompt_tokens = KIT_TOKENS;
  options.max_tokens = 32;
  options.full_ready = 1;
  return options;
}

void KitOpenCore(kit_t* kit) {
  memset(kit, 0, sizeof *kit);
  const kvt_model_options_t model = KitModelOptions();
  CHECK_OK(kvt_model_create(&model, &kit->model));
  kvt_codec_options_t codec;
  kvt_codec_options_init(&codec, sizeof codec);
  CHECK_OK(kvt_codec_create(kit->model, &codec, &kit->codec));
  for (int i = 0; i < KIT_TOKENS; ++i) kit->tokens[i] = 1000 + i;
  kvt_key_options_t keys;
  kvt_key_options_init(&keys, sizeof keys);
  keys.ns = (const uint8_t*)"tests";
  keys.ns_len = 5;
  size_t needed = 0;
  CHECK_OK(
      kvt_keys_compute(kit->model, &keys, kit->tokens, KIT_TOKENS, kit->keys, sizeof kit->keys, &needed));
  CHECK(needed == sizeof kit->keys);
  CHECK_OK(kvt_namespace_digest(keys.ns, keys.ns_len, NULL, 0, kit->digest));
  RowsInit(&kit->rows, 1);
  kvt_frame_spec_init(&kit->spec, sizeof kit->spec);
  kit->spec.layer_end = KIT_LAYERS;
  kit->spec.token_count = KIT_BLOCK;
  memcpy(kit->spec.key, kit->keys, KVT_KEY_BYTES);
  memcpy(kit->spec.namespace_digest, kit->digest, sizeof kit->digest);
  CHECK_OK(kvt_codec_encode(kit->codec, &kit->rows.view, &kit->spec, kit->frame, sizeof kit->frame,
                            &kit->frame_len, NULL));
  kit->frame_len_u64 = kit->frame_len;
}

void KitOpenCache(kit_t* kit) {
  KitOpenCore(kit);
  CHECK_OK(kvt_runtime_create(NULL, &kit->runtime));
  CHECK_OK(kvt_cache_open(kit->runtime, "mem:", 4, &kit->cache));
  kvt_status_t results[KIT_BLOCKS];
  uint64_t operation = 0;
  CHECK_OK(kvt_cache_submit_store(kit->cache, kit->codec, &kit->rows.view, &kit->spec, KIT_BLOCK, kit->keys,
                                  KIT_BLOCKS, results, KIT_WAIT_MS, &operation));
  CHECK_OK(kvt_cache_wait(kit->cache, operation, KIT_WAIT_MS, NULL));
}

void KitOpen(kit_t* kit) {
  KitOpenCache(kit);
  kvt_node_options_t node;
  kvt_node_options_init(&node, sizeof node);
  node.model = kit->model;
  memcpy(node.namespace_digest, kit->digest, sizeof kit->digest);
  CHECK_OK(kvt_node_open(kit->runtime, &node, &kit->client));
  node.listen = "tcp://127.0.0.1:0";
  node.listen_len = strlen(node.listen);
  CHECK_OK(kvt_node_open(kit->runtime, &node, &kit->node));
  CHECK_OK(kvt_node_serve(kit->node, kit->cache));
  char url[256];
  size_t url_len = 0;
  CHECK_OK(kvt_node_url(kit->node, url, sizeof url, &url_len));
  CHECK_OK(kvt_node_connect(kit->client, url, url_len, KIT_WAIT_MS, &kit->peer));
  CHECK_OK(kvt_stream_open(kit->node, kit->keys, &kit->stream));
  const kvt_verifier_options_t verifier = KitVerifierOptions();
  CHECK_OK(kvt_verifier_create(&verifier, &kit->verifier));
  CHECK_OK(kvt_meter_create(kit->runtime, &kit->meter));
  CHECK_OK(kvt_request_begin(kit->meter, "raw", 3, &kit->request));
}

void KitClose(kit_t* kit) {
  kvt_meter_destroy(kit->meter);
  kvt_verifier_destroy(kit->verifier);
  kvt_stream_destroy(kit->stream);
  kvt_peer_destroy(kit->peer);
  kvt_node_destroy(kit->client);
  kvt_node_destroy(kit->node);
  kvt_cache_destroy(kit->cache);
  kvt_codec_destroy(kit->codec);
  kvt_model_destroy(kit->model);
  kvt_runtime_destroy(kit->runtime);
}
