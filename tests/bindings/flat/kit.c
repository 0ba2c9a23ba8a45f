#include "bindings/flat/kit.h"

uint8_t text[256];

static int64_t Must(int64_t result) {
  if (result >= 0) return result;
  printf("the kit cannot be made: %lld; text: %s\n", (long long)result, (const char*)text);
  exit(1);
}

void ViewInit(view_t* view, int seed) {
  memset(view, 0, sizeof *view);
  view->record[KVTF_VIEW_ELEMENT] = KVTF_ELEMENT_F16;
  view->record[KVTF_VIEW_LAYER_END] = LAYERS;
  view->record[KVTF_VIEW_HEAD_END] = HEADS;
  view->record[KVTF_VIEW_TOKENS] = TOKENS;
  for (int s = 0; s < 2; ++s) {
    view->record[KVTF_VIEW_TOKEN_STRIDE_0 + s] = ROW_BYTES;
    view->record[KVTF_VIEW_HEAD_STRIDE_0 + s] = DIM * 2;
    view->record[KVTF_VIEW_ELEMENT_STRIDE_0 + s] = 2;
  }
  for (int i = 0; i < BASES; ++i) view->bases[i] = (int64_t)i * PLANE_BYTES;
  view->memory = calloc(1, VIEW_BYTES);
  if (view->memory == NULL) exit(1);
  for (int i = 0; seed != 0 && i < VIEW_BYTES / 2; ++i) {
    /* 1 to 2: a fixed exponent and a mantissa that is a product of token and channel. */
    const int token = i / (ROW_BYTES / 2) % TOKENS, channel = i % (ROW_BYTES / 2);
    const int mantissa = 512 + (token * seed * 13 % 31 - 15) * (channel % 17 - 8) * 4;
    view->memory[2 * i] = (uint8_t)(mantissa & 0xff);
    view->memory[2 * i + 1] = (uint8_t)(0x3c | mantissa >> 8);
  }
}

void ViewEnd(view_t* view) { free(view->memory); }

int64_t NewModel(const char* id) {
  int64_t options[KVTF_MODEL_WORDS];
  Must(kvtf_defaults(KVTF_RECORD_MODEL, (uint8_t*)options, sizeof options, TEXT));
  options[KVTF_MODEL_LAYERS] = LAYERS;
  options[KVTF_MODEL_KV_HEADS] = HEADS;
  options[KVTF_MODEL_K_DIM] = options[KVTF_MODEL_V_DIM] = DIM;
  return Must(
      kvtf_model_create(BYTES_OF(options), (const uint8_t*)id, strlen(id), NONE, NONE, text, sizeof text));
}

void SpecInit(int64_t spec[KVTF_SPEC_WORDS], int64_t begin, int64_t count) {
  memset(spec, 0, KVTF_SPEC_WORDS * sizeof *spec);
  spec[KVTF_SPEC_TOKEN_BEGIN] = begin;
  spec[KVTF_SPEC_TOKEN_COUNT] = count;
}

void MakeKeys(int64_t model, uint8_t keys[BLOCKS][KVTF_KEY_BYTES]) {
  int32_t tokens[TOKENS];
  for (int i = 0; i < TOKENS; ++i) tokens[i] = i;
  const int64_t bytes = Must(kvtf_keys_compute(model, BLOCK, NONE, NONE, BYTES_OF(tokens), NONE, keys[0],
                                               (size_t)BLOCKS * KVTF_KEY_BYTES, TEXT));
  if (bytes != BLOCKS * KVTF_KEY_BYTES) exit(1);
}

uint8_t* MakeFrame(int64_t model, const uint8_t* key, int block, uint64_t* length) {
  view_t view;
  int64_t spec[KVTF_SPEC_WORDS];
  ViewInit(&view, 1);
  SpecInit(spec, (int64_t)block * BLOCK, BLOCK);
  const int64_t codec = Must(kvtf_codec_create(model, (const uint8_t*)"raw", 3, NONE, NONE, TEXT));
  const int64_t bound = Must(kvtf_codec_bound(codec, VIEW_OF(&view), BYTES_OF(spec), TEXT));
  uint8_t* const frame = malloc((size_t)bound);
  *length = (uint64_t)Must(kvtf_codec_encode(codec, VIEW_OF(&view), BYTES_OF(spec), key, KVTF_KEY_BYTES, NONE,
                                             frame, (size_t)bound, NONE, TEXT));
  kvtf_codec_destroy(codec);
  ViewEnd(&view);
  return frame;
}
