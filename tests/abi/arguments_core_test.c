/* Wrong arguments of base, runtime, model, key and codec: the documented status, the field in the text, no
 * out-parameter touched. One argument is wrong at a time. */
#include <float.h>
#include <math.h>

#include "refused.h"

static void Base(void) {
  size_t needed = 77;
  CHECK_STATUS(kvt_last_error(NULL, 5, &needed), KVT_ERR_INVALID_ARGUMENT);
  CHECK(needed == 77);
  CHECK_STATUS(kvt_last_error(NULL, 0, NULL), KVT_ERR_INVALID_ARGUMENT);
  INVALID("runtime", kvt_runtime_create(NULL, NULL));
  char text[8];
  CHECK_STATUS(kvt_last_error(text, 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  CHECK(needed > 1 && needed < KVT_ERROR_TEXT_MAX);
}

static kvt_status_t Runtime(uint32_t threads, uint32_t reserved) {
  kvt_runtime_options_t options;
  kvt_runtime_options_init(&options, sizeof options);
  options.threads = threads;
  options.reserved = reserved;
  return kvt_runtime_create(&options, &o.handle);
}

static void RuntimeArguments(void) {
  INVALID("threads", Runtime(0, 0));
  INVALID("257", Runtime(257, 0));
  INVALID("reserved", Runtime(1, 1));
  INVALID("timeout_ms", kvt_runtime_close(kit.runtime, -1));
  INVALID("bytes", kvt_runtime_memory_used(kit.runtime, NULL));
  kvt_runtime_options_init(NULL, sizeof(kvt_runtime_options_t));
}

/* Model options with one field spoiled. */
#define MODEL_FIELD(text, change)                   \
  do {                                              \
    kvt_model_options_t m = KitModelOptions();      \
    change;                                         \
    INVALID(text, kvt_model_create(&m, &o.handle)); \
  } while (0)

static void ModelOptions(void) {
  static const uint8_t long_id[65] = {1};
  static const double factors[KIT_DIM / 2] = {1, 1, 1, 0, 1, 1, 1, 1};
  kvt_model_options_t good = KitModelOptions();
  INVALID("NULL", kvt_model_create(NULL, &o.handle));
  INVALID("model", kvt_model_create(&good, NULL));
  MODEL_FIELD("model_id", m.model_id = NULL);
  MODEL_FIELD("model_id", m.model_id_len = 0);
  MODEL_FIELD("model_id", (m.model_id = long_id, m.model_id_len = sizeof long_id));
  MODEL_FIELD("adapter", m.adapter_len = 3);
  MODEL_FIELD("adapter", (m.adapter = long_id, m.adapter_len = sizeof long_id));
  MODEL_FIELD("layout", m.layout = 0);
  MODEL_FIELD("layout", m.layout = 3);
  MODEL_FIELD("layers", m.layers = 0);
  MODEL_FIELD("1025", m.layers = 1025);
  MODEL_FIELD("kv_heads", m.kv_heads = 0);
  MODEL_FIELD("kv_heads", m.kv_heads = UINT32_MAX);
  MODEL_FIELD("k_dim", m.k_dim = 0);
  MODEL_FIELD("k_dim", m.k_dim = 8193);
  MODEL_FIELD("v_dim", m.v_dim = 0);
  MODEL_FIELD("v_dim", m.v_dim = 8193);
  MODEL_FIELD("element", m.element = 0);
  MODEL_FIELD("element", m.element = 6);
  MODEL_FIELD("rope_style", m.rope_style = 3);
  MODEL_FIELD("rope_dims", m.rope_dims = 15);
  MODEL_FIELD("rope", m.rope_dims = KIT_DIM + 2);
  MODEL_FIELD("rope", m.rope_offset = 2);
  MODEL_FIELD("rope", m.rope_offset = UINT32_MAX);
  MODEL_FIELD("rope_base", m.rope_base = 1);
  MODEL_FIELD("rope_base", m.rope_base = NAN);
  MODEL_FIELD("rope_base", m.rope_base = INFINITY);
  MODEL_FIELD("rope_factor", m.rope_factor_count = KIT_DIM / 2);
  MODEL_FIELD("rope_factor", (m.rope_factors = factors, m.rope_factor_count = 3));
  MODEL_FIELD("rope_factor", (m.rope_factors = factors, m.rope_factor_count = KIT_DIM / 2));
  MODEL_FIELD("rope_magnitude", m.rope_magnitude = NAN);
  MODEL_FIELD("rope_magnitude", m.rope_magnitude = 0);
  MODEL_FIELD("v_dim", (m.layout = KVT_LAYOUT_MLA, m.kv_heads = 1));
  MODEL_FIELD("kv_heads", (m.layout = KVT_LAYOUT_MLA, m.v_dim = 0));
  kvt_model_options_init(NULL, sizeof good);
}

static void ModelFunctions(void) {
  INVALID("fingerprint", kvt_model_fingerprint(kit.model, NULL));
  INVALID("buf", kvt_model_canonical(kit.model, NULL, 5, &o.size));
  INVALID("needed", kvt_model_canonical(kit.model, NULL, 0, NULL));
  INVALID("shard", kvt_shard_init(kit.model, NULL, sizeof(kvt_shard_t)));
  INVALID("struct_size", kvt_shard_init(kit.model, &o.shard, 4));
  size_t needed = 0;
  CHECK_STATUS(kvt_model_canonical(kit.model, o.bytes, 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  CHECK(needed > 1);
  size_t probed = 0;
  CHECK_OK(kvt_model_canonical(kit.model, NULL, 0, &probed));
  CHECK(probed == needed);
}

/* A view with one field spoiled, through a function that reads views. */
#define VIEW_FIELD(want, text, change)                                         \
  do {                                                                         \
    kvt_view_t v = kit.rows.view;                                              \
    change;                                                                    \
    REFUSED(want, text, kvt_codec_bound(kit.codec, &v, &kit.spec, &o.number)); \
    REFUSED(want, text, kvt_model_rope(kit.model, &v, 0, 1, 1));               \
  } while (0)

static void View(void) {
  void* holes[KIT_LAYERS * 2] = {NULL};
  static const int32_t table[KIT_TOKENS / 16] = {0, 1, -1, 3};
  INVALID("view", kvt_codec_bound(kit.codec, NULL, &kit.spec, &o.number));
  INVALID("view", kvt_model_rope(kit.model, NULL, 0, 1, 1));
  VIEW_FIELD(KVT_ERR_UNAVAILABLE, "CUDA", v.memory = KVT_MEMORY_CUDA);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "memory", v.memory = 9);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "element", v.element = 77);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "layer", v.layer_begin = KIT_LAYERS);
  VIEW_FIELD(KVT_ERR_MISMATCH, "layer", (v.layer_end = KIT_LAYERS + 1, v.base_count += 2));
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "head", v.head_begin = KIT_HEADS);
  VIEW_FIELD(KVT_ERR_MISMATCH, "head", v.head_end = KIT_HEADS + 1);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "bases", v.bases = NULL);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "bases", v.bases = holes);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "base_count", v.base_count = 3);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "reserved", v.reserved = 1);
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "page_tokens", (v.block_table = table, v.block_table_len = 4));
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "block_table",
             (v.block_table = table, v.block_table_len = 1, v.page_tokens = 16));
  VIEW_FIELD(KVT_ERR_INVALID_ARGUMENT, "block_table",
             (v.block_table = table, v.block_table_len = 4, v.page_tokens = 16));
  REFUSED(KVT_ERR_OUT_OF_RANGE, "token", kvt_model_rope(kit.model, &kit.rows.view, KIT_TOKENS, 1, 1));
  REFUSED(KVT_ERR_OUT_OF_RANGE, "token", kvt_model_rope(kit.model, &kit.rows.view, 1, UINT64_MAX, 1));
  kvt_view_init(NULL, sizeof(kvt_view_t));
}

#define KEY_FIELD(text, change)                                                                         \
  do {                                                                                                  \
    kvt_key_options_t k;                                                                                \
    kvt_key_options_init(&k, sizeof k);                                                                 \
    change;                                                                                             \
    INVALID(text,                                                                                       \
            kvt_keys_compute(kit.model, &k, kit.tokens, KIT_TOKENS, o.bytes, sizeof o.bytes, &o.size)); \
  } while (0)

static void Keys(void) {
  static const uint8_t byte = 1;
  const kvt_key_extra_t descending[2] = {{5, &byte, 1}, {4, &byte, 1}};
  const kvt_key_extra_t hole[1] = {{5, NULL, 1}};
  const kvt_key_extra_t big[1] = {{5, &byte, 4097}};
  kvt_key_options_t good;
  kvt_key_options_init(&good, sizeof good);
  KEY_FIELD("block_tokens", k.block_tokens = 0);
  KEY_FIELD("17", k.block_tokens = 17);
  KEY_FIELD("block_tokens", k.block_tokens = 65552);
  KEY_FIELD("ns", k.ns_len = 4);
  KEY_FIELD("1025", (k.ns = kit.frame, k.ns_len = 1025));
  KEY_FIELD("salt", k.salt_len = 4);
  KEY_FIELD("salt", (k.salt = kit.frame, k.salt_len = 1025));
  KEY_FIELD("extra", k.extra_count = 1);
  KEY_FIELD("extra", (k.extras = descending, k.extra_count = 2));
  KEY_FIELD("extra", (k.extras = hole, k.extra_count = 1));
  KEY_FIELD("4097", (k.extras = big, k.extra_count = 1));
  INVALID("tokens", kvt_keys_compute(kit.model, &good, NULL, 16, o.bytes, sizeof o.bytes, &o.size));
  INVALID("buf", kvt_keys_compute(kit.model, &good, kit.tokens, 16, NULL, 36, &o.size));
  INVALID("needed", kvt_keys_compute(kit.model, &good, kit.tokens, 16, NULL, 0, NULL));
  INVALID("ns", kvt_namespace_digest(NULL, 3, NULL, 0, o.bytes));
  INVALID("salt", kvt_namespace_digest(NULL, 0, NULL, 3, o.bytes));
  INVALID("digest", kvt_namespace_digest(NULL, 0, NULL, 0, NULL));
  INVALID("tokens", kvt_block_hashes(NULL, 16, 16, NULL, 0, NULL, 0, o.lengths, 4, &o.size));
  INVALID("block_tokens", kvt_block_hashes(kit.tokens, 16, 0, NULL, 0, NULL, 0, o.lengths, 4, &o.size));
  INVALID("adapter", kvt_block_hashes(kit.tokens, 16, 16, NULL, 3, NULL, 0, o.lengths, 4, &o.size));
  INVALID("ns", kvt_block_hashes(kit.tokens, 16, 16, NULL, 0, NULL, 3, o.lengths, 4, &o.size));
  kvt_key_options_init(NULL, sizeof good);
}

#define CODEC_FIELD(want, text, change)                              \
  do {                                                               \
    kvt_codec_options_t c;                                           \
    kvt_codec_options_init(&c, sizeof c);                            \
    change;                                                          \
    REFUSED(want, text, kvt_codec_create(kit.model, &c, &o.handle)); \
  } while (0)

#define KIVI c.name = "kivi4", c.name_len = 5

static void CodecOptions(void) {
  kvt_codec_options_t good;
  kvt_codec_options_init(&good, sizeof good);
  INVALID("codec", kvt_codec_create(kit.model, &good, NULL));
  CODEC_FIELD(KVT_ERR_UNSUPPORTED, "zip9", (c.name = "zip9", c.name_len = 4));
  CODEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "name", c.name_len = 3);
  CODEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "group_tokens", (KIVI, c.group_tokens = 15));
  CODEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "group_tokens", (KIVI, c.group_tokens = 1025));
  CODEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "group_channels", (KIVI, c.group_channels = 7));
  CODEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "group_channels", (KIVI, c.group_channels = 8193));
  CODEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "quantiser", c.quantiser = 1);
  kvt_codec_options_init(NULL, sizeof good);
}

#define SPEC_FIELD(want, text, change)                                                                \
  do {                                                                                                \
    kvt_frame_spec_t s = kit.spec;                                                                    \
    change;                                                                                           \
    REFUSED(want, text, kvt_codec_bound(kit.codec, &kit.rows.view, &s, &o.number));                   \
    REFUSED(want, text,                                                                               \
            kvt_codec_encode(kit.codec, &kit.rows.view, &s, o.bytes, sizeof o.bytes, &o.size, NULL)); \
    REFUSED(want, text,                                                                               \
            kvt_codec_decode(kit.codec, kit.frame, kit.frame_len, &s, &kit.rows.view, &o.report));    \
  } while (0)

static void Spec(void) {
  INVALID("spec", kvt_codec_bound(kit.codec, &kit.rows.view, NULL, &o.number));
  SPEC_FIELD(KVT_ERR_OUT_OF_RANGE, "token", s.token_count = KIT_TOKENS + 1);
  SPEC_FIELD(KVT_ERR_OUT_OF_RANGE, "token", s.token_begin = UINT64_MAX);
  SPEC_FIELD(KVT_ERR_OUT_OF_RANGE, "layer", s.layer_end = KIT_LAYERS + 1);
  SPEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "layer", s.layer_begin = KIT_LAYERS);
  SPEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "token_count", s.token_count = 0);
  SPEC_FIELD(KVT_ERR_INVALID_ARGUMENT, "reserved", s.reserved = 1);
  kvt_frame_spec_init(NULL, sizeof(kvt_frame_spec_t));
}

static void CodecFunctions(void) {
  const kvt_view_t* view = &kit.rows.view;
  INVALID("bytes", kvt_codec_bound(kit.codec, view, &kit.spec, NULL));
  INVALID("buf", kvt_codec_encode(kit.codec, view, &kit.spec, NULL, 5, &o.size, NULL));
  INVALID("frame", kvt_codec_decode(kit.codec, NULL, 100, &kit.spec, view, NULL));
  INVALID("frame", kvt_frame_verify(NULL, 100));
  INVALID("frame", kvt_frame_describe(NULL, 100, o.text, sizeof o.text, &o.size));
  INVALID("buf", kvt_frame_describe(kit.frame, kit.frame_len, NULL, 5, &o.size));
  uint64_t bound = 0;
  size_t needed = 0;
  CHECK_OK(kvt_codec_bound(kit.codec, view, &kit.spec, &bound));
  CHECK_STATUS(kvt_codec_encode(kit.codec, view, &kit.spec, o.bytes, 10, &needed, NULL),
               KVT_ERR_BUFFER_TOO_SMALL);
  CHECK(needed >= kit.frame_len && needed <= bound);
}

static void FrameOfAnother(void) {
  rows_t rows;
  RowsInit(&rows, 0);
  const struct {
    const char* field;
    int what;
  } cases[] = {{"key", 0}, {"namespace", 1}, {"position", 2}, {"token", 3}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    kvt_frame_spec_t spec = kit.spec;
    kvt_view_t view = rows.view;
    if (cases[i].what == 0) spec.key[0] ^= 1;
    if (cases[i].what == 1) spec.namespace_digest[0] ^= 1;
    if (cases[i].what == 2) view.first_position = 16;
    if (cases[i].what == 3) spec.token_count = 32;
    REFUSED(KVT_ERR_MISMATCH, cases[i].field,
            kvt_codec_decode(kit.codec, kit.frame, kit.frame_len, &spec, &view, &o.report));
  }
  kvt_model_options_t other = KitModelOptions();
  other.model_id_len -= 1;
  kvt_model_t model = 0;
  kvt_codec_t codec = 0;
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  CHECK_OK(kvt_model_create(&other, &model));
  CHECK_OK(kvt_codec_create(model, &options, &codec));
  REFUSED(KVT_ERR_MISMATCH, "model",
          kvt_codec_decode(codec, kit.frame, kit.frame_len, &kit.spec, &rows.view, &o.report));
  REFUSED(KVT_ERR_MISMATCH, "model_id", kvt_model_compare(kit.model, model));
  kvt_codec_destroy(codec);
  kvt_model_destroy(model);
}

static void FrameBytes(void) {
  rows_t rows;
  RowsInit(&rows, 0);
  for (size_t length = 0; length < kit.frame_len; length += length < 512 ? 1 : 97) {
    REFUSED(KVT_ERR_CORRUPT, "", kvt_frame_verify(kit.frame, length));
    REFUSED(KVT_ERR_CORRUPT, "",
            kvt_codec_decode(kit.codec, kit.frame, length, &kit.spec, &rows.view, &o.report));
  }
  for (size_t i = 0; i < kit.frame_len; ++i) {
    kit.frame[i] ^= 0x10;
    const kvt_status_t status = kvt_frame_verify(kit.frame, kit.frame_len);
    if (status != KVT_ERR_CORRUPT && status != KVT_ERR_VERSION) {
      printf("  byte %zu of %zu flipped: %s\n", i, kit.frame_len, kvt_status_name(status));
      CHECK(!"a flipped byte was not detected");
    }
    kit.frame[i] ^= 0x10;
  }
  CHECK_OK(kvt_frame_verify(kit.frame, kit.frame_len));
}

int main(void) {
  KitOpenCore(&kit);
  CHECK_OK(kvt_runtime_create(NULL, &kit.runtime));
  RUN(Base);
  RUN(RuntimeArguments);
  RUN(ModelOptions);
  RUN(ModelFunctions);
  RUN(View);
  RUN(Keys);
  RUN(CodecOptions);
  RUN(Spec);
  RUN(CodecFunctions);
  RUN(FrameOfAnother);
  RUN(FrameBytes);
  KitClose(&kit);
  return Finish();
}
