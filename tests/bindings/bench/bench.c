/* The measure of the languages: for each line on standard input one pass, ROUNDS times put and get over COUNT
 * frames of about 64 KiB, in a memory cache that is emptied outside of the time; prints the pass's
 * nanoseconds. */
#include <kvartet/kvartet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  COUNT = 128,
  ROUNDS = 80,
  LAYERS = 4,
  HEADS = 4,
  DIM = 64,
  BLOCK = 16,
  TOKENS = COUNT * BLOCK,
  ROW = HEADS * DIM * 2
};

static void Check(kvt_status_t status, const char* what) {
  if (status == KVT_OK) return;
  fprintf(stderr, "%s: %s\n", what, kvt_status_name(status));
  exit(1);
}

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static uint8_t keys[COUNT][KVT_KEY_BYTES];
static uint8_t* frames[COUNT];
static size_t lengths[COUNT];

static void MakeFrames(void) {
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = (const uint8_t*)"bench";
  options.model_id_len = 5;
  options.layers = LAYERS;
  options.kv_heads = HEADS;
  options.k_dim = options.v_dim = DIM;
  kvt_model_t model;
  Check(kvt_model_create(&options, &model), "model");
  kvt_codec_t codec;
  Check(kvt_codec_create(model, NULL, &codec), "codec");
  static int32_t tokens[TOKENS];
  for (int i = 0; i < TOKENS; ++i) tokens[i] = i;
  Check(kvt_keys_compute(model, NULL, tokens, TOKENS, keys[0], sizeof keys, NULL), "keys");
  const size_t plane = (size_t)TOKENS * ROW;
  uint8_t* const memory = malloc(plane * LAYERS * 2);
  for (size_t i = 0; i < plane * LAYERS * 2; ++i) memory[i] = (uint8_t)((i * 7 + i / 251) & 0x3f);
  void* bases[LAYERS * 2];
  for (int i = 0; i < LAYERS * 2; ++i) bases[i] = memory + (size_t)i * plane;
  kvt_view_t view;
  kvt_view_init(&view, sizeof view);
  view.element = KVT_ELEMENT_F16;
  view.layer_end = LAYERS;
  view.head_end = HEADS;
  view.tokens = TOKENS;
  view.bases = bases;
  view.base_count = LAYERS * 2;
  for (int s = 0; s < 2; ++s) {
    view.token_stride[s] = ROW;
    view.head_stride[s] = DIM * 2;
    view.element_stride[s] = 2;
  }
  for (int i = 0; i < COUNT; ++i) {
    kvt_frame_spec_t spec;
    kvt_frame_spec_init(&spec, sizeof spec);
    spec.token_begin = (uint64_t)i * BLOCK;
    spec.token_count = BLOCK;
    memcpy(spec.key, keys[i], sizeof spec.key);
    uint64_t bound = 0;
    Check(kvt_codec_bound(codec, &view, &spec, &bound), "bound");
    frames[i] = malloc(bound);
    Check(kvt_codec_encode(codec, &view, &spec, frames[i], bound, &lengths[i], NULL), "encode");
  }
  free(memory);
  kvt_codec_destroy(codec);
  kvt_model_destroy(model);
}

int main(void) {
  MakeFrames();
  kvt_runtime_t runtime;
  kvt_cache_t cache;
  Check(kvt_runtime_create(NULL, &runtime), "runtime");
  Check(kvt_cache_open(runtime, "mem:?capacity=256MiB", 20, &cache), "cache");
  uint8_t* const buffer = malloc(lengths[0] + 4096);
  for (int c = getchar(); c == '\n'; c = getchar()) {
    int64_t took = 0;
    for (int round = 0; round < ROUNDS; ++round) {
      const int64_t begun = Now();
      for (int i = 0; i < COUNT; ++i) {
        size_t got = 0;
        Check(kvt_cache_put(cache, keys[i], frames[i], lengths[i]), "put");
        Check(kvt_cache_get(cache, keys[i], buffer, lengths[0] + 4096, &got), "get");
      }
      took += Now() - begun;
      Check(kvt_cache_remove(cache, keys[0], COUNT, NULL), "remove");
    }
    printf("%lld\n", (long long)took);
    fflush(stdout);
  }
  kvt_cache_destroy(cache);
  kvt_runtime_destroy(runtime);
  return 0;
}
