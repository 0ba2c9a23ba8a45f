/* struct_size: a structure that is too short is refused, a longer one is accepted while its tail is zero,
 * init fills a longer one and leaves a shorter one alone, out-structures are written as far as struct_size
 * says and no further. */
#include "kit.h"

static kit_t kit;

/* Room for a structure and a tail that a later release might have added. */
enum { TAIL = 64 };
#define GROWN(type)     \
  struct {              \
    type head;          \
    uint8_t tail[TAIL]; \
  }

static int All(const uint8_t* bytes, size_t size, uint8_t value) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != value) return 0;
  return 1;
}

/* One options type: init, then `open` with a size that is short, 0, exact, long, long and dirty, absurd.
 * `first` is the size of its first release: from there on a shorter structure leaves the rest at its
 * defaults. */
#define OPTIONS_TEST(type, first, init, prepare, open, close)               \
  do {                                                                      \
    GROWN(type) grown;                                                      \
    uint64_t handle = 0x77;                                                 \
    memset(&grown, 0xA5, sizeof grown);                                     \
    init(&grown.head, (first)-1);                                           \
    CHECK(All((const uint8_t*)&grown, sizeof grown, 0xA5));                 \
    init(&grown.head, sizeof grown);                                        \
    CHECK(grown.head.struct_size == sizeof grown);                          \
    CHECK(All(grown.tail, TAIL, 0));                                        \
    prepare;                                                                \
    CHECK_OK(open);                                                         \
    CHECK(handle != 0x77);                                                  \
    close(handle);                                                          \
    handle = 0x77;                                                          \
    grown.tail[TAIL - 1] = 1;                                               \
    CHECK_STATUS(open, KVT_ERR_INVALID_ARGUMENT);                           \
    CHECK_TEXT("offset");                                                   \
    grown.head.struct_size = sizeof(type); /* now the tail is not ours */   \
    CHECK_OK(open);                                                         \
    close(handle);                                                          \
    grown.head.struct_size = (uint32_t)(first);                             \
    CHECK_OK(open);                                                         \
    close(handle);                                                          \
    handle = 0x77;                                                          \
    const uint32_t wrong[] = {0, 4, (uint32_t)(first)-1, 5000, UINT32_MAX}; \
    for (int i = 0; i < 5; ++i) {                                           \
      grown.head.struct_size = wrong[i];                                    \
      CHECK_STATUS(open, KVT_ERR_INVALID_ARGUMENT);                         \
      CHECK_TEXT("struct_size");                                            \
      CHECK(handle == 0x77);                                                \
    }                                                                       \
  } while (0)

static void RuntimeOptions(void) {
  OPTIONS_TEST(kvt_runtime_options_t, sizeof(kvt_runtime_options_t), kvt_runtime_options_init, (void)0,
               kvt_runtime_create(&grown.head, &handle), kvt_runtime_destroy);
}

static void ModelOptions(void) {
  const kvt_model_options_t good = KitModelOptions();
  OPTIONS_TEST(kvt_model_options_t, sizeof(kvt_model_options_t), kvt_model_options_init,
               (grown.head = good, grown.head.struct_size = sizeof grown),
               kvt_model_create(&grown.head, &handle), kvt_model_destroy);
}

static void CodecOptions(void) {
  OPTIONS_TEST(kvt_codec_options_t, offsetof(kvt_codec_options_t, profile), kvt_codec_options_init, (void)0,
               kvt_codec_create(kit.model, &grown.head, &handle), kvt_codec_destroy);
}

static void VerifierOptions(void) {
  const kvt_verifier_options_t good = KitVerifierOptions();
  OPTIONS_TEST(kvt_verifier_options_t, sizeof(kvt_verifier_options_t), kvt_verifier_options_init,
               (grown.head = good, grown.head.struct_size = sizeof grown),
               kvt_verifier_create(&grown.head, &handle), kvt_verifier_destroy);
}

static void NodeOptions(void) {
  OPTIONS_TEST(kvt_node_options_t, sizeof(kvt_node_options_t), kvt_node_options_init,
               (grown.head.model = kit.model), kvt_node_open(kit.runtime, &grown.head, &handle),
               kvt_node_destroy);
}

static void NoHandle(uint64_t handle) { (void)handle; }

static kvt_status_t KeysWith(const kvt_key_options_t* options, uint64_t* blocks) {
  uint8_t keys[sizeof kit.keys];
  size_t needed = 0;
  const kvt_status_t status =
      kvt_keys_compute(kit.model, options, kit.tokens, KIT_TOKENS, keys, sizeof keys, &needed);
  if (status == KVT_OK) *blocks = needed / KVT_KEY_BYTES;
  return status;
}

static void KeyOptions(void) {
  OPTIONS_TEST(kvt_key_options_t, sizeof(kvt_key_options_t), kvt_key_options_init, (void)0,
               KeysWith(&grown.head, &handle), NoHandle);
}

static void ViewAndSpec(void) {
  GROWN(kvt_view_t) view;
  GROWN(kvt_frame_spec_t) spec;
  uint64_t bound = 0;
  memset(&view, 0, sizeof view);
  memset(&spec, 0, sizeof spec);
  view.head = kit.rows.view;
  spec.head = kit.spec;
  view.head.struct_size = sizeof view;
  spec.head.struct_size = sizeof spec;
  CHECK_OK(kvt_codec_bound(kit.codec, &view.head, &spec.head, &bound));
  view.tail[0] = 1;
  CHECK_STATUS(kvt_codec_bound(kit.codec, &view.head, &spec.head, &bound), KVT_ERR_INVALID_ARGUMENT);
  CHECK_TEXT("view");
  view.tail[0] = 0;
  spec.tail[TAIL - 1] = 1;
  CHECK_STATUS(kvt_codec_bound(kit.codec, &view.head, &spec.head, &bound), KVT_ERR_INVALID_ARGUMENT);
  CHECK_TEXT("spec");
  spec.tail[TAIL - 1] = 0;
  view.head.struct_size = sizeof(kvt_view_t) - 4;
  CHECK_STATUS(kvt_codec_bound(kit.codec, &view.head, &spec.head, &bound), KVT_ERR_INVALID_ARGUMENT);
  CHECK_TEXT("struct_size");
  view.head.struct_size = sizeof view;
  spec.head.struct_size = 0;
  CHECK_STATUS(kvt_codec_bound(kit.codec, &view.head, &spec.head, &bound), KVT_ERR_INVALID_ARGUMENT);
  CHECK_TEXT("struct_size");
  GROWN(kvt_shard_t) shard;
  memset(&shard, 0xA5, sizeof shard);
  CHECK_OK(kvt_shard_init(kit.model, &shard.head, sizeof shard));
  CHECK(shard.head.layer_end == KIT_LAYERS && shard.head.head_end == KIT_HEADS &&
        shard.head.block_tokens == 16);
  CHECK(All(shard.tail, TAIL, 0));
}

/* An out-structure: too short is refused and untouched, exact does not reach the tail, longer is zeroed. */
#define OUT_TEST(type, call)                                        \
  do {                                                              \
    GROWN(type) grown;                                              \
    memset(&grown, 0xA5, sizeof grown);                             \
    grown.head.struct_size = sizeof(type);                          \
    CHECK_OK(call);                                                 \
    CHECK(grown.head.struct_size == sizeof(type));                  \
    CHECK(All(grown.tail, TAIL, 0xA5));                             \
    grown.head.struct_size = sizeof grown;                          \
    CHECK_OK(call);                                                 \
    CHECK(All(grown.tail, TAIL, 0));                                \
    memset(&grown, 0xA5, sizeof grown);                             \
    grown.head.struct_size = sizeof(type) - 1;                      \
    CHECK_STATUS(call, KVT_ERR_INVALID_ARGUMENT);                   \
    CHECK_TEXT("struct_size");                                      \
    CHECK(All((const uint8_t*)&grown + 4, sizeof grown - 4, 0xA5)); \
    grown.head.struct_size = 0;                                     \
    CHECK_STATUS(call, KVT_ERR_INVALID_ARGUMENT);                   \
  } while (0)

static void OutStructs(void) {
  static uint8_t frame[KIT_FRAME_CAP];
  size_t needed = 0;
  OUT_TEST(kvt_codec_report_t,
           kvt_codec_encode(kit.codec, &kit.rows.view, &kit.spec, frame, sizeof frame, &needed, &grown.head));
  OUT_TEST(kvt_codec_report_t,
           kvt_codec_decode(kit.codec, kit.frame, kit.frame_len, &kit.spec, &kit.rows.view, &grown.head));
  OUT_TEST(kvt_cache_stats_t, kvt_cache_stats(kit.cache, &grown.head));
  OUT_TEST(kvt_node_stats_t, kvt_node_stats(kit.node, &grown.head));
  OUT_TEST(kvt_verifier_stats_t, kvt_verifier_stats(kit.verifier, &grown.head));
  OUT_TEST(kvt_action_t, kvt_verifier_next(kit.verifier, &grown.head));
}

int main(void) {
  KitOpen(&kit);
  RUN(RuntimeOptions);
  RUN(ModelOptions);
  RUN(CodecOptions);
  RUN(VerifierOptions);
  RUN(NodeOptions);
  RUN(KeyOptions);
  RUN(ViewAndSpec);
  RUN(OutStructs);
  KitClose(&kit);
  return Finish();
}
