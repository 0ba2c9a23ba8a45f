/* What the samples share: a check of every status, and a stand-in for an engine's KV memory. */
#ifndef KVARTET_SAMPLES_SAMPLE_H_
#define KVARTET_SAMPLES_SAMPLE_H_

#include <kvartet/kvartet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 4, HEADS = 2, DIM = 32, TOKENS = 64, ROW = HEADS * DIM * 2, WAIT_MS = 5000 };

/* Ends the program when a call failed, with the library's own words. */
static inline void Check(kvt_status_t status, const char* what) {
  char text[KVT_ERROR_TEXT_MAX + 1] = "";
  if (status == KVT_OK) return;
  kvt_last_error(text, KVT_ERROR_TEXT_MAX, NULL);
  fprintf(stderr, "%s: %s: %s\n", what, kvt_status_name(status), text);
  exit(1);
}

/* One plane of f16 rows for K and one for V of each layer, as an engine would hold them. */
typedef struct kv {
  uint8_t planes[LAYERS * 2][TOKENS * ROW];
  void* bases[LAYERS * 2];
  kvt_view_t view; /* says where the planes are; copies nothing */
} kv_t;

static inline void KvInit(kv_t* kv, int fill) {
  memset(kv->planes, fill, sizeof kv->planes);
  for (int i = 0; i < LAYERS * 2; ++i) kv->bases[i] = kv->planes[i];
  kvt_view_init(&kv->view, sizeof kv->view);
  kv->view.element = KVT_ELEMENT_F16;
  kv->view.layer_end = LAYERS;
  kv->view.head_end = HEADS;
  kv->view.tokens = TOKENS;
  kv->view.bases = kv->bases;
  kv->view.base_count = LAYERS * 2;
  for (int stream = 0; stream < 2; ++stream) {
    kv->view.token_stride[stream] = ROW;
    kv->view.head_stride[stream] = DIM * 2;
    kv->view.element_stride[stream] = 2;
  }
}

/* The model whose KV it is: identity and geometry. */
static inline kvt_model_t NewModel(void) {
  kvt_model_t model;
  kvt_model_options_t options;
  kvt_model_options_init(&options, sizeof options);
  options.model_id = (const uint8_t*)"digest of the weights";
  options.model_id_len = 21;
  options.layers = LAYERS;
  options.kv_heads = HEADS;
  options.k_dim = options.v_dim = DIM;
  Check(kvt_model_create(&options, &model), "model");
  return model;
}

static inline kvt_codec_t NewCodec(kvt_model_t model, const char* name) {
  kvt_codec_t codec;
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.name = name;
  options.name_len = strlen(name);
  Check(kvt_codec_create(model, &options, &codec), "codec");
  return codec;
}

#endif /* KVARTET_SAMPLES_SAMPLE_H_ */
