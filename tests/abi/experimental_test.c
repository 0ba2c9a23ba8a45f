/* Calibration and profiles: handles, arguments, and the way from rows to a profile, a codec, and a profile in
 * a cache. */
#include "kvartet/experimental.h"

#include <stdlib.h>

#include "refused.h"

enum { PROFILE_CAP = 1 << 20 };

static kvt_calibration_t calibration;
static uint8_t *profile, *wrapped;
static size_t profile_len;

static void Handles(void) {
  const uint64_t bad[] = {0, UINT64_MAX, calibration ^ ((uint64_t)1 << 32)};
  kvt_calibration_info_t info = {.struct_size = sizeof info};
  for (int i = 0; i < 3; ++i) {
    REFUSED(KVT_ERR_STALE_HANDLE, "calibration", kvt_calibration_add(bad[i], &kit.rows.view, 0, 16, NULL));
    REFUSED(KVT_ERR_STALE_HANDLE, "calibration", kvt_calibration_progress(bad[i], &info));
    REFUSED(KVT_ERR_STALE_HANDLE, "calibration",
            kvt_calibration_save(bad[i], o.bytes, sizeof o.bytes, &o.size));
    REFUSED(KVT_ERR_STALE_HANDLE, "calibration",
            kvt_calibration_finish(bad[i], o.bytes, sizeof o.bytes, &o.size));
    kvt_calibration_destroy(bad[i]);
  }
  REFUSED(KVT_ERR_WRONG_HANDLE, "model", kvt_calibration_progress(kit.model, &info));
  REFUSED(KVT_ERR_WRONG_HANDLE, "calibration", kvt_model_fingerprint(calibration, o.bytes));
  REFUSED(KVT_ERR_WRONG_HANDLE, "calibration", kvt_calibration_create(calibration, NULL, &o.handle));
  kvt_calibration_destroy(kit.model);
  kvt_model_destroy(calibration);
  CHECK_OK(kvt_calibration_progress(calibration, &info));
  CHECK(info.documents == 0 && info.tokens == 0);
}

#define OPTION(text, change)                                         \
  do {                                                               \
    kvt_calibration_options_t c;                                     \
    kvt_calibration_options_init(&c, sizeof c);                      \
    change;                                                          \
    INVALID(text, kvt_calibration_create(kit.model, &c, &o.handle)); \
  } while (0)

static void Arguments(void) {
  INVALID("calibration", kvt_calibration_create(kit.model, NULL, NULL));
  OPTION("group_layers", c.group_layers = KIT_LAYERS + 1);
  OPTION("ratio_min", c.ratio_min = 3);
  OPTION("ratio_min", c.ratio_min = 33);
  OPTION("layer", c.layer_end = KIT_LAYERS + 1);
  OPTION("head", c.head_end = KIT_HEADS + 1);
  OPTION("reserved", c.reserved = 1);
  OPTION("struct_size", c.struct_size = 4);
  kvt_calibration_options_init(NULL, sizeof(kvt_calibration_options_t));
  INVALID("view", kvt_calibration_add(calibration, NULL, 0, 16, NULL));
  REFUSED(KVT_ERR_OUT_OF_RANGE, "token",
          kvt_calibration_add(calibration, &kit.rows.view, 1, KIT_TOKENS, NULL));
  REFUSED(KVT_ERR_OUT_OF_RANGE, "token",
          kvt_calibration_add(calibration, &kit.rows.view, 1, UINT64_MAX, NULL));
  REFUSED(KVT_ERR_OUT_OF_RANGE, "token",
          kvt_calibration_finish(calibration, o.bytes, sizeof o.bytes, &o.size));
  INVALID("info", kvt_calibration_progress(calibration, NULL));
  INVALID("saved", kvt_calibration_restore(kit.model, NULL, 10, &o.handle));
  REFUSED(KVT_ERR_CORRUPT, "", kvt_calibration_restore(kit.model, kit.frame, 40, &o.handle));
  INVALID("profile", kvt_profile_fingerprint(NULL, 10, o.bytes));
  REFUSED(KVT_ERR_CORRUPT, "", kvt_profile_fingerprint(kit.frame, kit.frame_len, o.bytes));
  REFUSED(KVT_ERR_CORRUPT, "", kvt_profile_describe(kit.frame, 3, o.text, sizeof o.text, &o.size));
  INVALID("profile", kvt_profile_rungs(NULL, 10, NULL, 0, &o.size));
  REFUSED(KVT_ERR_CORRUPT, "", kvt_profile_rungs(kit.frame, kit.frame_len, NULL, 0, &o.size));
  INVALID("profile", kvt_profile_set_rungs(NULL, 10, NULL, 0, NULL, 0, o.bytes, sizeof o.bytes, &o.size));
  REFUSED(KVT_ERR_CORRUPT, "",
          kvt_profile_set_rungs(kit.frame, 3, NULL, 0, NULL, 0, o.bytes, sizeof o.bytes, &o.size));
  INVALID("fingerprint", kvt_profile_key(NULL, o.bytes));
  INVALID("key", kvt_profile_key(kit.digest, NULL));
  INVALID("frame", kvt_profile_unwrap(NULL, 10, o.bytes, sizeof o.bytes, &o.size));
  REFUSED(KVT_ERR_MISMATCH, "",
          kvt_profile_unwrap(kit.frame, kit.frame_len, o.bytes, sizeof o.bytes, &o.size));
}

static void Calibrate(void) {
  static rows_t document;
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    RowsInit(&document, seed);
    CHECK_OK(kvt_calibration_add(calibration, &document.view, 0, KIT_TOKENS, NULL));
  }
  kvt_calibration_info_t info = {.struct_size = sizeof info};
  CHECK_OK(kvt_calibration_progress(calibration, &info));
  CHECK(info.documents == 8 && info.tokens == 8 * (KIT_TOKENS - 4) && info.nonfinite == 0);
  CHECK_OK(kvt_calibration_finish(calibration, profile, PROFILE_CAP, &profile_len));
  uint8_t fingerprint[KVT_FINGERPRINT_BYTES];
  CHECK_OK(kvt_profile_fingerprint(profile, profile_len, fingerprint));
  char json[4096];
  size_t json_len = 0;
  CHECK_OK(kvt_profile_describe(profile, profile_len, json, sizeof json, &json_len));
  CHECK(json_len > 2 && json[0] == '{' && json[json_len - 1] == '}');
}

/* A state that was saved and restored makes the same profile. */
static void SaveAndRestore(void) {
  size_t saved_len = 0, again_len = 0;
  CHECK_OK(kvt_calibration_save(calibration, NULL, 0, &saved_len));
  uint8_t* saved = malloc(saved_len);
  uint8_t* again = malloc(PROFILE_CAP);
  kvt_calibration_t restored = 0;
  CHECK_OK(kvt_calibration_save(calibration, saved, saved_len, &saved_len));
  CHECK_OK(kvt_calibration_restore(kit.model, saved, saved_len, &restored));
  CHECK_OK(kvt_calibration_finish(restored, again, PROFILE_CAP, &again_len));
  CHECK(again_len == profile_len && memcmp(again, profile, profile_len) == 0);
  saved[saved_len / 2] ^= 1;
  REFUSED(KVT_ERR_CORRUPT, "", kvt_calibration_restore(kit.model, saved, saved_len, &o.handle));
  kvt_calibration_destroy(restored);
  free(again);
  free(saved);
}

#define RUNGS(text, change)                                                                           \
  do {                                                                                                \
    kvt_profile_rung_t rung = {.codec = "int8", .cost = {1e9, 2e9, 1.9, 1, 0}};                       \
    const char* processor = "P";                                                                      \
    size_t processor_len = 1, count = 1;                                                              \
    const kvt_profile_rung_t* rungs = &rung;                                                          \
    change;                                                                                           \
    INVALID(text, kvt_profile_set_rungs(profile, profile_len, rungs, count, processor, processor_len, \
                                        o.bytes, sizeof o.bytes, &o.size));                           \
  } while (0)

/* What rungs cost goes into a profile, comes out for a planner, and leaves the fingerprint as it was. */
static void Rungs(void) {
  RUNGS("rungs is NULL", rungs = NULL);
  RUNGS("count", count = 65);
  RUNGS("processor", processor = NULL);
  RUNGS("processor_len is 0", processor_len = 0);
  RUNGS("processor_len", processor_len = SIZE_MAX);
  RUNGS("rungs[0].codec", rung.codec[0] = 0);
  RUNGS("rungs[0].reserved is 2", rung.reserved = 2);
  RUNGS("rungs[0].cost.encode_rate is -1", rung.cost.encode_rate = -1);
  RUNGS("rungs[0].cost.ratio is 0", rung.cost.ratio = 0);
  const kvt_profile_rung_t rungs[2] = {{.codec = "lossless", .cost = {1e9, 2e9, 1.3, 0, 0}},
                                       {.codec = "transform", .ratio = 16, .cost = {2e8, 3e8, 15, 9, 0}}};
  kvt_profile_rung_t back[2];
  size_t needed = 77;
  CHECK_OK(kvt_profile_rungs(profile, profile_len, NULL, 0, &needed));
  CHECK(needed == 0);
  uint8_t* with = malloc(PROFILE_CAP);
  CHECK_OK(kvt_profile_set_rungs(profile, profile_len, rungs, 2, "P", 1, with, PROFILE_CAP, &needed));
  const size_t with_len = needed;
  CHECK_STATUS(kvt_profile_rungs(with, with_len, back, 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
  CHECK(needed == 2);
  CHECK_OK(kvt_profile_rungs(with, with_len, back, 2, &needed));
  CHECK(needed == 2 && memcmp(back, rungs, sizeof back) == 0);
  INVALID("rungs is NULL", kvt_profile_rungs(with, with_len, NULL, 2, &o.size));
  INVALID("rungs", kvt_profile_rungs(with, with_len, NULL, 0, NULL));
  uint8_t fingerprint[KVT_FINGERPRINT_BYTES], same[KVT_FINGERPRINT_BYTES];
  CHECK_OK(kvt_profile_fingerprint(profile, profile_len, fingerprint));
  CHECK_OK(kvt_profile_fingerprint(with, with_len, same));
  CHECK(memcmp(fingerprint, same, sizeof same) == 0);
  /* For a planner of two threads a side. */
  kvt_codec_rung_t costs[2];
  for (int i = 0; i < 2; ++i) {
    costs[i] = back[i].cost;
    costs[i].encode_rate *= 2;
    costs[i].decode_rate *= 2;
  }
  kvt_planner_options_t options;
  kvt_planner_options_init(&options, sizeof options);
  options.rungs = costs;
  options.rung_count = 2;
  kvt_planner_t planner = 0;
  CHECK_OK(kvt_planner_create(&options, &planner));
  kvt_codec_request_t request;
  kvt_codec_request_init(&request, sizeof request);
  request.bytes = 64 << 20;
  kvt_codec_choice_t choice = {.struct_size = sizeof choice};
  const struct {
    double bandwidth;
    uint32_t quality_max, rung;
  } expected[] = {{1e6, 9, 1}, {1e6, 8, 0}, {1e12, 9, KVT_RUNG_NONE}};
  for (int i = 0; i < 3; ++i) {
    request.bandwidth = expected[i].bandwidth;
    request.quality_max = expected[i].quality_max;
    CHECK_OK(kvt_planner_pick_codec(planner, &request, &choice));
    CHECK(choice.rung == expected[i].rung);
  }
  kvt_planner_destroy(planner);
  CHECK_OK(kvt_profile_set_rungs(with, with_len, NULL, 0, NULL, 0, with, PROFILE_CAP, &needed));
  CHECK(needed == profile_len && memcmp(with, profile, profile_len) == 0);
  CHECK_OK(kvt_profile_set_rungs(profile, profile_len, rungs, 2, "P", 1, with, PROFILE_CAP, &needed));
  with[needed - 1] ^= 1;
  REFUSED(KVT_ERR_CORRUPT, "rungs", kvt_profile_rungs(with, needed, NULL, 0, &o.size));
  free(with);
}

static void TransformCodec(void) {
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.name = "transform";
  options.name_len = 9;
  INVALID("profile", kvt_codec_create(kit.model, &options, &o.handle));
  options.profile = profile;
  options.profile_len = profile_len;
  options.ratio = 3;
  INVALID("ratio", kvt_codec_create(kit.model, &options, &o.handle));
  options.ratio = 4;
  kvt_codec_t codec = 0;
  CHECK_OK(kvt_codec_create(kit.model, &options, &codec));
  kvt_frame_spec_t spec = kit.spec;
  spec.token_count = KIT_TOKENS;
  static uint8_t frame[KIT_FRAME_CAP];
  static rows_t back;
  size_t needed = 0;
  RowsInit(&back, 0);
  CHECK_OK(kvt_codec_encode(codec, &kit.rows.view, &spec, frame, sizeof frame, &needed, NULL));
  CHECK(needed < sizeof kit.rows.data);
  CHECK_OK(kvt_codec_decode(codec, frame, needed, &spec, &back.view, NULL));
  CHECK(memcmp(back.data, kit.rows.data, sizeof back.data) != 0);
  /* A codec without the profile says so and guesses nothing. */
  REFUSED(KVT_ERR_PROFILE_MISSING, "profile",
          kvt_codec_decode(kit.codec, frame, needed, &spec, &back.view, &o.report));
  profile[profile_len / 2] ^= 1;
  REFUSED(KVT_ERR_CORRUPT, "profile", kvt_codec_create(kit.model, &options, &o.handle));
  profile[profile_len / 2] ^= 1;
  kvt_codec_destroy(codec);
}

static void ProfileInCache(void) {
  uint8_t fingerprint[KVT_FINGERPRINT_BYTES], key[KVT_KEY_BYTES];
  size_t needed = 0, back_len = 0;
  CHECK_OK(kvt_profile_fingerprint(profile, profile_len, fingerprint));
  CHECK_OK(kvt_profile_key(fingerprint, key));
  CHECK_OK(kvt_profile_wrap(profile, profile_len, kit.digest, wrapped, PROFILE_CAP, &needed));
  CHECK_OK(kvt_frame_verify(wrapped, needed));
  uint64_t length = needed, operation = 0;
  kvt_status_t result;
  CHECK_OK(kvt_cache_submit_put(kit.cache, key, 1, wrapped, &length, &result, KIT_WAIT_MS, &operation));
  CHECK_OK(kvt_cache_wait(kit.cache, operation, KIT_WAIT_MS, NULL));
  memset(wrapped, 0, PROFILE_CAP);
  CHECK_OK(kvt_cache_get(kit.cache, key, wrapped, PROFILE_CAP, &needed));
  uint8_t* back = malloc(PROFILE_CAP);
  CHECK_OK(kvt_profile_unwrap(wrapped, needed, back, PROFILE_CAP, &back_len));
  CHECK(back_len == profile_len && memcmp(back, profile, profile_len) == 0);

  /* Rungs change neither key nor fingerprint, and what was measured last is what the cache has. */
  for (int round = 1; round <= 2; ++round) {
    kvt_profile_rung_t rung = {.codec = "int8", .cost = {1e9 * round, 2e9, 1.9, 1, 0}}, kept;
    CHECK_OK(kvt_profile_set_rungs(profile, profile_len, &rung, 1, "here", 4, back, PROFILE_CAP, &back_len));
    CHECK_OK(kvt_profile_wrap(back, back_len, kit.digest, wrapped, PROFILE_CAP, &needed));
    CHECK_OK(kvt_cache_put(kit.cache, key, wrapped, needed));
    memset(wrapped, 0, PROFILE_CAP);
    CHECK_OK(kvt_cache_get(kit.cache, key, wrapped, PROFILE_CAP, &needed));
    CHECK_OK(kvt_profile_unwrap(wrapped, needed, back, PROFILE_CAP, &back_len));
    size_t count = 0;
    CHECK_OK(kvt_profile_rungs(back, back_len, &kept, 1, &count));
    CHECK(count == 1 && kept.cost.encode_rate == rung.cost.encode_rate);
  }
  free(back);
}

int main(void) {
  KitOpenCache(&kit);
  profile = malloc(PROFILE_CAP);
  wrapped = malloc(PROFILE_CAP);
  CHECK_OK(kvt_calibration_create(kit.model, NULL, &calibration));
  RUN(Handles);
  RUN(Arguments);
  RUN(Calibrate);
  RUN(SaveAndRestore);
  RUN(Rungs);
  RUN(TransformCodec);
  RUN(ProfileInCache);
  kvt_calibration_destroy(calibration);
  KitClose(&kit);
  free(wrapped);
  free(profile);
  return Finish();
}
