/* What the flat facade makes of arguments that no language passes: views that leave their memory, which is of
 * the very size here so that a sanitizer sees one byte too far, records of any length and content, and
 * handles of nothing. And the objects that the other test leaves out. */
#include "bindings/flat/kit.h"

static int64_t model, codec;

/* Numbers that are the same in every run. */
static uint64_t Random(void) {
  static uint64_t state = 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* An end of some range, or a number beside the one that is right. */
static int64_t OddNumber(int64_t right) {
  static const int64_t odd[] = {0,
                                1,
                                -1,
                                2,
                                3,
                                16,
                                64,
                                65,
                                ROW_BYTES,
                                -ROW_BYTES,
                                PLANE_BYTES,
                                INT32_MAX,
                                UINT32_MAX,
                                (int64_t)1 << 32,
                                (int64_t)1 << 48,
                                INT64_MAX,
                                INT64_MIN};
  if (Random() % 2 == 0) return (int64_t)((uint64_t)right + Random() % 5 - 2);
  return odd[Random() % (sizeof odd / sizeof odd[0])];
}

/* Views with one to three words or bases changed: refused, or read and written inside of their memory. */
static void Views(void) {
  int refused = 0, done = 0;
  view_t view;
  ViewInit(&view, 1);
  const view_t whole = view;
  int64_t spec[KVTF_SPEC_WORDS];
  SpecInit(spec, TOKENS - BLOCK, BLOCK); /* the last rows, which end where the memory does */
  uint64_t length = 0;
  uint8_t key[BLOCKS][KVTF_KEY_BYTES];
  MakeKeys(model, key);
  uint8_t* const frame = MakeFrame(model, key[BLOCKS - 1], BLOCKS - 1, &length);
  uint8_t* const room = malloc(1 << 17);
  for (int i = 0; i < 20000; ++i) {
    memcpy(view.record, whole.record, sizeof view.record);
    memcpy(view.bases, whole.bases, sizeof view.bases);
    for (uint64_t changes = 1 + Random() % 3; changes > 0; --changes) {
      const uint64_t at = Random() % (KVTF_VIEW_WORDS + BASES);
      if (at < KVTF_VIEW_WORDS) {
        view.record[at] = OddNumber(view.record[at]);
      } else {
        view.bases[at - KVTF_VIEW_WORDS] = OddNumber(view.bases[at - KVTF_VIEW_WORDS]);
      }
    }
    int32_t table[4] = {(int32_t)(Random() % 5), 1, 2, (int32_t)OddNumber(3)};
    const size_t table_len = Random() % 4 == 0 ? sizeof table : 0;
    const size_t view_len = Random() % 8 == 0 ? Random() % sizeof view.record : sizeof view.record;
    const size_t memory_len = Random() % 8 == 0 ? Random() % VIEW_BYTES : VIEW_BYTES;
#define HOSTILE                                                                                  \
  (const uint8_t*)view.record, view_len, BYTES_OF(view.bases), (const uint8_t*)table, table_len, \
      view.memory, memory_len
    const int64_t encoded =
        kvtf_codec_encode(codec, HOSTILE, BYTES_OF(spec), NONE, NONE, room, 1 << 17, NONE, TEXT);
    const int64_t decoded =
        kvtf_codec_decode(codec, frame, (size_t)length, HOSTILE, BYTES_OF(spec), NONE, NONE, NONE, TEXT);
    const int64_t turned =
        kvtf_model_rope(model, HOSTILE, OddNumber(0), OddNumber(TOKENS), OddNumber(1), TEXT);
    refused += (encoded < 0) + (decoded < 0) + (turned < 0);
    done += (encoded >= 0) + (decoded >= 0) + (turned >= 0);
    CHECK(encoded >= 0 || text[0] != 0);
  }
  CHECK(refused > 1000 && done > 1000);
  free(room);
  free(frame);
  ViewEnd(&view);
}

/* Every function that takes a handle, with handles of nothing. */
static void Handles(void) {
  const int64_t none[] = {
      0, -1, 1, INT64_MAX, INT64_MIN, (int64_t)0x71 << 56 | 9999, (int64_t)0x73 << 56 | 7, codec + 1};
  view_t view;
  ViewInit(&view, 1);
  uint8_t key[KVTF_KEY_BYTES] = {1};
  uint8_t record[256] = {0};
  for (size_t i = 0; i < sizeof none / sizeof none[0]; ++i) {
    const int64_t h = none[i];
    const int64_t results[] = {
        kvtf_memory_destroy(h, TEXT) == 0 ? -1 : 0,
        kvtf_memory_read(h, 0, record, 8, TEXT),
        kvtf_memory_write(h, 0, record, 8, TEXT),
        kvtf_runtime_close(h, 0, TEXT),
        kvtf_runtime_memory_used(h, TEXT),
        kvtf_model_fingerprint(h, record, 16, TEXT),
        kvtf_model_canonical(h, NONE, TEXT),
        kvtf_model_compare(h, model, TEXT),
        kvtf_model_shard(h, record, sizeof record, TEXT),
        kvtf_model_rope(h, VIEW_OF(&view), 0, 1, 0, TEXT),
        kvtf_keys_compute(h, BLOCK, NONE, NONE, NONE, NONE, NONE, TEXT),
        kvtf_codec_create(h, NONE, NONE, NONE, TEXT),
        kvtf_codec_bound(h, VIEW_OF(&view), NONE, TEXT),
        kvtf_calibration_create(h, NONE, TEXT),
        kvtf_calibration_restore(h, record, sizeof record, TEXT),
        kvtf_calibration_add(h, VIEW_OF(&view), 0, 16, TEXT),
        kvtf_calibration_progress(h, record, sizeof record, TEXT),
        kvtf_calibration_save(h, NONE, TEXT),
        kvtf_calibration_finish(h, NONE, TEXT),
        kvtf_cache_open(h, (const uint8_t*)"mem:", 4, TEXT),
        kvtf_cache_close(h, 0, TEXT),
        kvtf_cache_get(h, key, sizeof key, NONE, TEXT),
        kvtf_cache_put_one(h, key, sizeof key, record, sizeof record, TEXT),
        kvtf_cache_match(h, key, sizeof key, TEXT),
        kvtf_cache_remove(h, key, sizeof key, TEXT),
        kvtf_cache_stats(h, record, sizeof record, TEXT),
        kvtf_cache_poll(h, record, sizeof record, TEXT),
        kvtf_cache_event_fd(h, TEXT),
        kvtf_cache_submit_put(h, key, sizeof key, record, 8, record, 0, 0, TEXT),
        kvtf_operation_wait(h, 0, record, sizeof record, TEXT),
        kvtf_operation_cancel(h, TEXT),
        kvtf_operation_results(h, NONE, TEXT),
        kvtf_operation_frame(h, 0, NONE, TEXT),
        kvtf_node_open(h, model, NONE, NONE, NONE, TEXT),
        kvtf_node_url(h, NONE, TEXT),
        kvtf_node_serve(h, h, TEXT),
        kvtf_node_close(h, 0, TEXT),
        kvtf_node_stats(h, record, sizeof record, TEXT),
        kvtf_node_poll(h, record, sizeof record, TEXT),
        kvtf_node_connect(h, (const uint8_t*)"tcp://127.0.0.1:1", 17, 0, TEXT),
        kvtf_peer_submit_pull(h, h, key, sizeof key, 64, 0, TEXT),
        kvtf_peer_submit_pull_stream(h, h, key, sizeof key, 64, 1, 0, TEXT),
        kvtf_stream_open(h, key, sizeof key, TEXT),
        kvtf_stream_append(h, record, sizeof record, TEXT),
        kvtf_stream_finish(h, 1, TEXT),
        kvtf_verifier_next(h, record, sizeof record, TEXT),
        kvtf_verifier_cancel(h, TEXT),
        kvtf_meter_create(h, TEXT),
        kvtf_meter_json(h, NONE, TEXT),
        kvtf_request_begin(h, (const uint8_t*)"raw", 3, TEXT),
        kvtf_request_end(h, 1, TEXT),
    };
    for (size_t n = 0; n < sizeof results / sizeof results[0]; ++n) {
      if (results[n] >= 0) printf("  call %zu took handle %llx\n", n, (unsigned long long)h);
      CHECK(results[n] < 0);
    }
    kvtf_runtime_destroy(h);
    kvtf_model_destroy(h);
    kvtf_codec_destroy(h);
    kvtf_calibration_destroy(h);
    kvtf_cache_destroy(h);
    kvtf_operation_release(h);
    kvtf_node_destroy(h);
    kvtf_peer_destroy(h);
    kvtf_stream_destroy(h);
    kvtf_verifier_destroy(h);
    kvtf_meter_destroy(h);
  }
  REFUSED(WRONG_HANDLE, "no calibration", kvtf_calibration_save(codec, NONE, TEXT));
  REFUSED(WRONG_HANDLE, "no codec", kvtf_codec_bound(model, VIEW_OF(&view), NONE, TEXT));
  ViewEnd(&view);
}

static void Keys(void) {
  int32_t tokens[BLOCK] = {0};
  int64_t extras[3] = {3, 9, 0};
  uint8_t key[KVTF_KEY_BYTES];
  REFUSED(INVALID_ARGUMENT, "extra 0 has 9 bytes",
          kvtf_keys_compute(model, BLOCK, NONE, NONE, BYTES_OF(tokens), BYTES_OF(extras), NONE, TEXT));
  REFUSED(
      INVALID_ARGUMENT, "inside of its length",
      kvtf_keys_compute(model, BLOCK, NONE, NONE, BYTES_OF(tokens), (const uint8_t*)extras, 15, NONE, TEXT));
  extras[1] = 8;
  CHECK(kvtf_keys_compute(model, BLOCK, NONE, NONE, BYTES_OF(tokens), BYTES_OF(extras), key, sizeof key,
                          TEXT) == KVTF_KEY_BYTES);
  REFUSED(INVALID_ARGUMENT, "tokens are 3",
          kvtf_keys_compute(model, BLOCK, NONE, NONE, (const uint8_t*)tokens, 3, NONE, NONE, TEXT));
  REFUSED(INVALID_ARGUMENT, "block_tokens is -1",
          kvtf_keys_compute(model, -1, NONE, NONE, BYTES_OF(tokens), NONE, NONE, TEXT));
  uint64_t hash;
  CHECK(kvtf_block_hashes(BLOCK, BYTES_OF(tokens), NONE, NONE, (uint8_t*)&hash, sizeof hash, TEXT) == 8);
  CHECK(kvtf_block_hashes(BLOCK, BYTES_OF(tokens), NONE, NONE, (uint8_t*)&hash, 7, TEXT) == 8);
}

/* A frame alone: what is refused leaves the cache empty. */
static void PutOne(void) {
  const int64_t runtime = GOOD(kvtf_runtime_create(NONE, TEXT));
  const int64_t cache = GOOD(kvtf_cache_open(runtime, (const uint8_t*)"mem:?capacity=16MiB", 19, TEXT));
  uint8_t keys[BLOCKS][KVTF_KEY_BYTES];
  uint64_t length = 0;
  MakeKeys(model, keys);
  uint8_t* const frame = MakeFrame(model, keys[0], 0, &length);
  const size_t len = (size_t)length;
  REFUSED(INVALID_ARGUMENT, "key is 35", kvtf_cache_put_one(cache, keys[0], 35, frame, len, TEXT));
  REFUSED(INVALID_ARGUMENT, "key is 72", kvtf_cache_put_one(cache, keys[0], 72, frame, len, TEXT));
  REFUSED(INVALID_ARGUMENT, "key is 0", kvtf_cache_put_one(cache, NONE, frame, len, TEXT));
  REFUSED(INVALID_ARGUMENT, "frame is NULL", kvtf_cache_put_one(cache, keys[0], KVTF_KEY_BYTES, NONE, TEXT));
  REFUSED(INVALID_ARGUMENT, "frame_len is 0",
          kvtf_cache_put_one(cache, keys[0], KVTF_KEY_BYTES, frame, 0, TEXT));
  REFUSED(INVALID_ARGUMENT, "frame_len",
          kvtf_cache_put_one(cache, keys[0], KVTF_KEY_BYTES, frame, SIZE_MAX, TEXT));
  REFUSED(MISMATCH, "key", kvtf_cache_put_one(cache, keys[1], KVTF_KEY_BYTES, frame, len, TEXT));
  /* Cut anywhere, in memory of the very size. */
  for (size_t i = 0; i < 64; ++i) {
    const size_t cut = i < 32 ? i + 1 : len - 1 - (i - 32) * (len / 40);
    uint8_t* const part = malloc(cut);
    memcpy(part, frame, cut);
    REFUSED(CORRUPT, "", kvtf_cache_put_one(cache, keys[0], KVTF_KEY_BYTES, part, cut, TEXT));
    free(part);
  }
  CHECK(kvtf_cache_match(cache, keys[0], sizeof keys, TEXT) == 0);
  CHECK(kvtf_cache_put_one(cache, keys[0], KVTF_KEY_BYTES, frame, len, NONE) == 0);
  GOOD(kvtf_cache_close(cache, WAIT_MS, TEXT));
  REFUSED(CLOSED, "", kvtf_cache_put_one(cache, keys[0], KVTF_KEY_BYTES, frame, len, TEXT));
  kvtf_cache_destroy(cache);
  REFUSED(STALE_HANDLE, "", kvtf_cache_put_one(cache, keys[0], KVTF_KEY_BYTES, frame, len, TEXT));
  kvtf_runtime_destroy(runtime);
  free(frame);
}

static void Profiles(void) {
  const int64_t calibration = GOOD(kvtf_calibration_create(model, NONE, TEXT));
  int64_t info[KVTF_CALIBRATION_INFO_WORDS] = {0};
  REFUSED(OUT_OF_RANGE, "64", kvtf_calibration_finish(calibration, NONE, TEXT));
  for (int seed = 1; seed <= 3; ++seed) {
    view_t document;
    ViewInit(&document, seed);
    GOOD(kvtf_calibration_add(calibration, VIEW_OF(&document), 0, TOKENS, TEXT));
    document.bases[0] = 2;
    REFUSED(
        OUT_OF_RANGE, "base 0",
        kvtf_calibration_add(calibration, (const uint8_t*)document.record, sizeof document.record,
                             BYTES_OF(document.bases), NONE, document.memory, PLANE_BYTES, 0, TOKENS, TEXT));
    REFUSED(INVALID_ARGUMENT, "token_count -1",
            kvtf_calibration_add(calibration, VIEW_OF(&document), 0, -1, TEXT));
    ViewEnd(&document);
  }
  GOOD(kvtf_calibration_progress(calibration, (uint8_t*)info, sizeof info, TEXT));
  CHECK(info[KVTF_CALIBRATION_INFO_DOCUMENTS] == 3);
  const size_t len = (size_t)GOOD(kvtf_calibration_finish(calibration, NONE, TEXT));
  uint8_t* const profile = malloc(len);
  CHECK(kvtf_calibration_finish(calibration, profile, len, TEXT) == (int64_t)len);
  kvtf_calibration_destroy(calibration);
  uint8_t fingerprint[16], key[KVTF_KEY_BYTES];
  CHECK(kvtf_profile_fingerprint(profile, len, fingerprint, sizeof fingerprint, TEXT) == 16);
  CHECK(kvtf_profile_key(fingerprint, sizeof fingerprint, key, sizeof key, TEXT) == KVTF_KEY_BYTES);
  CHECK(kvtf_profile_describe(profile, len, NONE, TEXT) > 2);
  const size_t wrapped_len = (size_t)GOOD(kvtf_profile_wrap(profile, len, NONE, NONE, TEXT));
  uint8_t* const wrapped = malloc(wrapped_len);
  const int64_t wrapped_bytes = GOOD(kvtf_profile_wrap(profile, len, NONE, wrapped, wrapped_len, TEXT));
  CHECK(kvtf_profile_unwrap(wrapped, (size_t)wrapped_bytes, NONE, TEXT) == (int64_t)len);
  REFUSED(INVALID_ARGUMENT, "digest is 3", kvtf_profile_wrap(profile, len, key, 3, NONE, TEXT));
  /* The profile's bytes are copied: the codec outlives them. */
  const int64_t options[KVTF_CODEC_WORDS] = {32, 32, 8};
  const int64_t transform =
      GOOD(kvtf_codec_create(model, (const uint8_t*)"transform", 9, BYTES_OF(options), profile, len, TEXT));
  free(profile);
  free(wrapped);
  view_t view;
  ViewInit(&view, 1);
  int64_t spec[KVTF_SPEC_WORDS];
  SpecInit(spec, 0, TOKENS);
  const int64_t bound = GOOD(kvtf_codec_bound(transform, VIEW_OF(&view), BYTES_OF(spec), TEXT));
  uint8_t* const frame = malloc((size_t)bound);
  const size_t frame_len = (size_t)GOOD(kvtf_codec_encode(transform, VIEW_OF(&view), BYTES_OF(spec), NONE,
                                                          NONE, frame, (size_t)bound, NONE, TEXT));
  GOOD(
      kvtf_codec_decode(transform, frame, frame_len, VIEW_OF(&view), BYTES_OF(spec), NONE, NONE, NONE, TEXT));
  REFUSED(PROFILE_MISSING, "profile",
          kvtf_codec_decode(codec, frame, frame_len, VIEW_OF(&view), BYTES_OF(spec), NONE, NONE, NONE, TEXT));
  kvtf_codec_destroy(transform);
  free(frame);
  ViewEnd(&view);
}

static void VerifierAndMeter(void) {
  int64_t options[KVTF_VERIFIER_WORDS];
  GOOD(kvtf_defaults(KVTF_RECORD_VERIFIER, (uint8_t*)options, sizeof options, TEXT));
  options[KVTF_VERIFIER_VOCABULARY] = 97;
  options[KVTF_VERIFIER_PROMPT_TOKENS] = 5;
  options[KVTF_VERIFIER_MAX_TOKENS] = 8;
  const int64_t verifier = GOOD(kvtf_verifier_create(BYTES_OF(options), NONE, TEXT));
  const int64_t bytes = GOOD(kvtf_verifier_next(verifier, NONE, TEXT));
  uint8_t* const action = malloc((size_t)bytes);
  CHECK(kvtf_verifier_next(verifier, action, (size_t)bytes, TEXT) == bytes);
  free(action);
  REFUSED(INVALID_ARGUMENT, "microseconds is -1", kvtf_verifier_drafted(verifier, NONE, -1, TEXT));
  REFUSED(INVALID_ARGUMENT, "tokens are 3",
          kvtf_verifier_drafted(verifier, (const uint8_t*)options, 3, 0, TEXT));
  REFUSED(INVALID_ARGUMENT, "gaps are 8",
          kvtf_verifier_verified(verifier, (const uint8_t*)options, 4, (const uint8_t*)options, 8, 0, TEXT));
  REFUSED(INVALID_ARGUMENT, "token is", kvtf_verifier_rechecked(verifier, INT64_MAX, 0, TEXT));
  kvtf_verifier_destroy(verifier);
  const float rows[6] = {1, 2, 3, 3, 2, 1};
  const uint32_t widths[2] = {4, 2}, places[2] = {0, 1};
  double margin = -1;
  CHECK(kvtf_fidelity_classify(BYTES_OF(rows), BYTES_OF(rows), BYTES_OF(widths), BYTES_OF(places), 3,
                               (uint8_t*)&margin, 8, TEXT) == KVTF_FIDELITY_C);
  REFUSED(INVALID_ARGUMENT, "widths",
          kvtf_fidelity_classify(BYTES_OF(rows), BYTES_OF(rows), BYTES_OF(widths), BYTES_OF(places), 4, NONE,
                                 TEXT));
  const int64_t runtime = GOOD(kvtf_runtime_create(NONE, TEXT));
  const int64_t meter = GOOD(kvtf_meter_create(runtime, TEXT));
  const int64_t request = GOOD(kvtf_request_begin(meter, (const uint8_t*)"raw", 3, TEXT));
  GOOD(kvtf_request_part(meter, request, KVTF_PART_PREFILL, TEXT));
  REFUSED(INVALID_ARGUMENT, "", kvtf_request_part(meter, request, INT64_MAX, TEXT));
  REFUSED(INVALID_ARGUMENT, "amount is -1",
          kvtf_request_count(meter, request, KVTF_COUNTER_CHECKSUMS, -1, TEXT));
  REFUSED(INVALID_ARGUMENT, "nanoseconds", kvtf_request_attribute(meter, request, 2, 3, -1, TEXT));
  GOOD(kvtf_request_end(meter, request, TEXT));
  CHECK(kvtf_meter_json(meter, NONE, TEXT) > 2 && kvtf_meter_advice(meter, NONE, TEXT) > 0);
  kvtf_meter_destroy(meter);
  kvtf_runtime_destroy(runtime);
}

int main(void) {
  model = NewModel("hostile");
  codec = GOOD(kvtf_codec_create(model, NONE, NONE, NONE, TEXT));
  RUN(Views);
  RUN(Handles);
  RUN(Keys);
  RUN(PutOne);
  RUN(Profiles);
  RUN(VerifierAndMeter);
  kvtf_codec_destroy(codec);
  kvtf_model_destroy(model);
  return Finish();
}
