/* A round trip per noun: what goes in comes out, and what is reported is true. */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

static kit_t kit;
static rows_t back;

static int SameRows(const rows_t* left, const rows_t* right) {
  return memcmp(left->data, right->data, sizeof left->data) == 0;
}

static void Base(void) {
  CHECK(kvt_abi_version() == KVT_ABI_VERSION);
  CHECK(strcmp(kvt_version_string(), "0.1.0") == 0);
  CHECK(strcmp(kvt_status_name(KVT_OK), "KVT_OK") == 0);
  CHECK(strcmp(kvt_status_name(KVT_ERR_PEER_DEAD), "KVT_ERR_PEER_DEAD") == 0);
  CHECK(strcmp(kvt_status_name(-9999), "KVT_STATUS_UNKNOWN") == 0);
  CHECK_STATUS(kvt_model_fingerprint(0, back.data[0]), KVT_ERR_STALE_HANDLE);
  CHECK_TEXT("model");
  uint64_t bytes = 0;
  CHECK_OK(kvt_runtime_memory_used(kit.runtime, &bytes));
  CHECK(LastText()[0] == 0); /* a success clears the text */
}

static void Model(void) {
  kvt_model_options_t options = KitModelOptions();
  kvt_model_t same = 0, other = 0;
  uint8_t left[KVT_FINGERPRINT_BYTES], right[KVT_FINGERPRINT_BYTES];
  CHECK_OK(kvt_model_create(&options, &same));
  options.adapter = (const uint8_t*)"lora";
  options.adapter_len = 4;
  CHECK_OK(kvt_model_create(&options, &other));
  CHECK_OK(kvt_model_compare(kit.model, same));
  CHECK_STATUS(kvt_model_compare(kit.model, other), KVT_ERR_MISMATCH);
  CHECK_TEXT("adapter");
  CHECK_OK(kvt_model_fingerprint(kit.model, left));
  CHECK_OK(kvt_model_fingerprint(same, right));
  CHECK(memcmp(left, right, sizeof left) == 0);
  CHECK_OK(kvt_model_fingerprint(other, right));
  CHECK(memcmp(left, right, sizeof left) != 0);
  kvt_model_destroy(other);
  kvt_model_destroy(same);
}

static float HalfToFloat(const uint8_t* p) {
  const int bits = p[0] | (p[1] << 8);
  const float magnitude = ldexpf((float)((bits & 0x3ff) | 0x400), ((bits >> 10) & 31) - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

static void Rope(void) {
  back = kit.rows;
  back.view.bases = back.bases;
  for (int i = 0; i < KIT_LAYERS * 2; ++i) back.bases[i] = back.data[i];
  back.view.first_position = 100000;
  CHECK_OK(kvt_model_rope(kit.model, &back.view, 0, KIT_TOKENS, 0));
  CHECK(memcmp(back.data[0], kit.rows.data[0], KIT_PLANE_BYTES) != 0); /* K turned */
  CHECK(memcmp(back.data[1], kit.rows.data[1], KIT_PLANE_BYTES) == 0); /* V did not */
  CHECK_OK(kvt_model_rope(kit.model, &back.view, 0, KIT_TOKENS, 1));
  for (int layer = 0; layer < KIT_LAYERS; ++layer)
    for (size_t i = 0; i < KIT_PLANE_BYTES; i += 2)
      if (fabsf(HalfToFloat(back.data[layer * 2] + i) - HalfToFloat(kit.rows.data[layer * 2] + i)) > 0.01f) {
        CHECK(!"undone rotation differs");
        return;
      }
}

static void Keys(void) {
  kvt_key_options_t options;
  kvt_key_options_init(&options, sizeof options);
  options.block_tokens = 32;
  options.ns = (const uint8_t*)"tests";
  options.ns_len = 5;
  uint8_t keys[4 * KVT_KEY_BYTES];
  size_t needed = 0;
  CHECK_OK(kvt_keys_compute(kit.model, &options, kit.tokens, KIT_TOKENS - 1, keys, sizeof keys, &needed));
  CHECK(needed == KVT_KEY_BYTES); /* whole blocks only */
  /* The chain value is that of the 16-token blocks; the token count differs. */
  CHECK(memcmp(keys, kit.keys + KVT_KEY_BYTES, 32) == 0);
  CHECK(keys[32] == 32 && kit.keys[KVT_KEY_BYTES + 32] == 16);
  options.ns_len = 4;
  uint8_t foreign[KVT_KEY_BYTES];
  CHECK_OK(kvt_keys_compute(kit.model, &options, kit.tokens, 32, foreign, sizeof foreign, &needed));
  CHECK(memcmp(foreign, keys, 32) != 0);
  uint64_t hashes[KIT_BLOCKS];
  CHECK_OK(kvt_block_hashes(kit.tokens, KIT_TOKENS, 16, NULL, 0, NULL, 0, hashes, KIT_BLOCKS, &needed));
  CHECK(needed == KIT_BLOCKS && hashes[0] != hashes[1]);
}

static void Codec(const char* name, double least_ratio) {
  kvt_codec_options_t options;
  kvt_codec_options_init(&options, sizeof options);
  options.name = name;
  options.name_len = strlen(name);
  kvt_codec_t codec = 0;
  CHECK_OK(kvt_codec_create(kit.model, &options, &codec));
  kvt_frame_spec_t spec = kit.spec;
  spec.token_count = KIT_TOKENS;
  static uint8_t frame[KIT_FRAME_CAP];
  size_t needed = 0;
  kvt_codec_report_t report = {sizeof report, 0, 0, 0, 0, 0};
  CHECK_OK(kvt_codec_encode(codec, &kit.rows.view, &spec, frame, sizeof frame, &needed, &report));
  CHECK(report.frame_bytes == needed && report.segments > 0 && report.nonfinite == 0);
  CHECK((double)sizeof kit.rows.data / (double)needed >= least_ratio);
  CHECK_OK(kvt_frame_verify(frame, needed));
  char json[4096];
  size_t json_len = 0;
  CHECK_OK(kvt_frame_describe(frame, needed, json, sizeof json - 1, &json_len));
  json[json_len] = 0;
  CHECK(strstr(json, name) != NULL);
  RowsInit(&back, 0);
  /* Any codec of the model decodes any frame. */
  CHECK_OK(kvt_codec_decode(kit.codec, frame, needed, &spec, &back.view, &report));
  CHECK(report.checksums >= report.segments && report.decoded_bytes == sizeof kit.rows.data);
  float worst = 0;
  for (int plane = 0; plane < KIT_LAYERS * 2; ++plane)
    for (size_t i = 0; i < KIT_PLANE_BYTES; i += 2) {
      const float error = fabsf(HalfToFloat(back.data[plane] + i) - HalfToFloat(kit.rows.data[plane] + i));
      if (error > worst) worst = error;
    }
  CHECK(strcmp(name, "raw") == 0 ? SameRows(&back, &kit.rows) : worst > 0 && worst < 1);
  kvt_codec_destroy(codec);
}

static void Raw(void) { Codec("raw", 0.5); }
static void Int8(void) { Codec("int8", 1.2); }
static void Kivi4(void) { Codec("kivi4", 1.5); }
static void Kivi2(void) { Codec("kivi2", 1.8); }
static void Kivi8(void) { Codec("kivi8", 1.1); }
static void Fp8(void) { Codec("fp8", 1.2); }
static void Fp8E5m2(void) { Codec("fp8_e5m2", 1.2); }
static void Rotated(void) { Codec("rotated4v3", 1.5); }

static void Load(kvt_cache_t cache) {
  kvt_status_t results[KIT_BLOCKS] = {1, 1, 1, 1};
  uint64_t operation = 0;
  kvt_completion_t done;
  RowsInit(&back, 0);
  CHECK_OK(kvt_cache_submit_load(cache, kit.codec, &back.view, &kit.spec, KIT_BLOCK, kit.keys, KIT_BLOCKS,
                                 results, KIT_WAIT_MS, &operation));
  CHECK_OK(kvt_cache_wait(cache, operation, KIT_WAIT_MS, &done));
  CHECK(done.operation == operation && done.kind == KVT_COMPLETION_DONE && done.items == KIT_BLOCKS &&
        done.items_ok == KIT_BLOCKS);
  for (int i = 0; i < KIT_BLOCKS; ++i) CHECK(results[i] == KVT_OK);
  CHECK(SameRows(&back, &kit.rows));
  CHECK_STATUS(kvt_cache_wait(cache, operation, 0, &done), KVT_ERR_NOT_FOUND); /* taken once */
}

static void CacheMemory(void) {
  Load(kit.cache);
  size_t matched = 0, removed = 0, needed = 0, count = 0;
  CHECK_OK(kvt_cache_match(kit.cache, kit.keys, KIT_BLOCKS, &matched));
  CHECK(matched == KIT_BLOCKS);
  static uint8_t frame[KIT_FRAME_CAP];
  CHECK_OK(kvt_cache_get(kit.cache, kit.keys, frame, sizeof frame, &needed));
  CHECK(needed == kit.frame_len && memcmp(frame, kit.frame, needed) == 0);
  CHECK_OK(kvt_cache_remove(kit.cache, kit.keys + 2 * KVT_KEY_BYTES, 1, &removed));
  CHECK(removed == 1);
  CHECK_OK(kvt_cache_match(kit.cache, kit.keys, KIT_BLOCKS, &matched));
  CHECK(matched == 2);
  kvt_status_t results[KIT_BLOCKS];
  uint64_t operation = 0;
  CHECK_OK(kvt_cache_submit_load(kit.cache, kit.codec, &back.view, &kit.spec, KIT_BLOCK, kit.keys, KIT_BLOCKS,
                                 results, KIT_WAIT_MS, &operation));
  int32_t fd = -1;
  CHECK_OK(kvt_cache_event_fd(kit.cache, &fd));
  struct pollfd waiting = {fd, POLLIN, 0};
  CHECK(poll(&waiting, 1, KIT_WAIT_MS) == 1);
  kvt_completion_t done;
  CHECK_OK(kvt_cache_poll(kit.cache, &done, 1, &count));
  CHECK(count == 1 && done.status == KVT_ERR_NOT_FOUND && done.items_ok == 3 && done.items == 4);
  CHECK(results[1] == KVT_OK && results[2] == KVT_ERR_NOT_FOUND && results[3] == KVT_OK);
  CHECK(poll(&waiting, 1, 0) == 0);
  CHECK_OK(kvt_cache_submit_put(kit.cache, kit.keys, 1, kit.frame, &kit.frame_len_u64, results, KIT_WAIT_MS,
                                &operation));
  CHECK_OK(kvt_cache_wait(kit.cache, operation, KIT_WAIT_MS, NULL)); /* there already: fine */
  CHECK_OK(kvt_cache_remove(kit.cache, kit.keys, 1, &removed));
  CHECK_OK(kvt_cache_put(kit.cache, kit.keys, kit.frame, kit.frame_len));
  CHECK_OK(kvt_cache_put(kit.cache, kit.keys, kit.frame, kit.frame_len));
  CHECK_OK(kvt_cache_get(kit.cache, kit.keys, frame, sizeof frame, &needed));
  CHECK(needed == kit.frame_len && memcmp(frame, kit.frame, needed) == 0);
  kvt_cache_stats_t stats = {.struct_size = sizeof stats};
  CHECK_OK(kvt_cache_stats(kit.cache, &stats));
  CHECK(stats.frames == 3 && stats.removals == 2 && stats.corrupt == 0 && stats.checksums > 0);
}

static void CacheFile(void) {
  char directory[] = "/tmp/kvt-abi-XXXXXX";
  char url[64];
  CHECK(mkdtemp(directory) != NULL);
  const size_t url_len = (size_t)snprintf(url, sizeof url, "file:%s/c?capacity=1GiB", directory);
  kvt_cache_t cache = 0, second = 0;
  kvt_status_t results[KIT_BLOCKS];
  uint64_t operation = 0;
  CHECK_OK(kvt_cache_open(kit.runtime, url, url_len, &cache));
  CHECK_OK(kvt_cache_submit_store(cache, kit.codec, &kit.rows.view, &kit.spec, KIT_BLOCK, kit.keys,
                                  KIT_BLOCKS, results, KIT_WAIT_MS, &operation));
  CHECK_OK(kvt_cache_wait(cache, operation, KIT_WAIT_MS, NULL));
  CHECK_STATUS(kvt_cache_open(kit.runtime, url, url_len, &second), KVT_ERR_LOCKED);
  CHECK_OK(kvt_cache_close(cache, KIT_WAIT_MS));
  CHECK_STATUS(
      kvt_cache_submit_put(cache, kit.keys, 1, kit.frame, &kit.frame_len_u64, results, 1000, &operation),
      KVT_ERR_CLOSED);
  kvt_cache_destroy(cache);
  CHECK_OK(kvt_cache_open(kit.runtime, url, url_len, &cache));
  Load(cache);
  kvt_cache_destroy(cache);
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", directory);
  CHECK(system(command) == 0);
}

static void Transfer(void) {
  static uint8_t slots[KIT_BLOCKS][KIT_FRAME_CAP];
  uint64_t lengths[KIT_BLOCKS] = {0}, operation = 0;
  kvt_status_t results[KIT_BLOCKS];
  CHECK_OK(kvt_peer_submit_push(kit.peer, kit.keys, 1, kit.frame, &kit.frame_len_u64, results, KIT_WAIT_MS,
                                &operation));
  CHECK_OK(kvt_node_wait(kit.client, operation, KIT_WAIT_MS, NULL));
  CHECK_OK(kvt_peer_submit_pull(kit.peer, kit.keys, 2, slots[0], KIT_FRAME_CAP, lengths, results, KIT_WAIT_MS,
                                &operation));
  kvt_completion_t done;
  CHECK_OK(kvt_node_wait(kit.client, operation, KIT_WAIT_MS, &done));
  CHECK(done.items_ok == 2 && lengths[0] == kit.frame_len && memcmp(slots[0], kit.frame, kit.frame_len) == 0);
  CHECK_OK(kvt_frame_verify(slots[1], lengths[1]));
  CHECK_OK(
      kvt_peer_submit_pull(kit.peer, kit.keys, 1, slots[0], 8, lengths, results, KIT_WAIT_MS, &operation));
  CHECK_STATUS(kvt_node_wait(kit.client, operation, KIT_WAIT_MS, NULL), KVT_ERR_BUFFER_TOO_SMALL);
  CHECK(lengths[0] == kit.frame_len);
}

static void Stream(void) {
  static uint8_t base[KIT_FRAME_CAP];
  uint64_t offsets[4], lengths[4], operation = 0;
  /* The pull may begin before the producer has written anything. */
  CHECK_OK(kvt_peer_submit_pull_stream(kit.peer, kit.keys, base, sizeof base, offsets, lengths, 4,
                                       KIT_WAIT_MS, &operation));
  for (uint32_t layer = 0; layer < KIT_LAYERS; ++layer) {
    kvt_frame_spec_t spec = kit.spec;
    spec.layer_begin = layer;
    spec.layer_end = layer + 1;
    static uint8_t frame[KIT_FRAME_CAP];
    size_t needed = 0;
    CHECK_OK(kvt_codec_encode(kit.codec, &kit.rows.view, &spec, frame, sizeof frame, &needed, NULL));
    CHECK_OK(kvt_stream_append(kit.stream, frame, needed));
  }
  CHECK_OK(kvt_stream_finish(kit.stream, 1));
  CHECK_STATUS(kvt_stream_append(kit.stream, kit.frame, kit.frame_len), KVT_ERR_CLOSED);
  kvt_completion_t done;
  CHECK_OK(kvt_node_wait(kit.client, operation, KIT_WAIT_MS, &done));
  CHECK(done.kind == KVT_COMPLETION_DONE && done.items_ok == KIT_LAYERS);
  RowsInit(&back, 0);
  for (uint32_t layer = 0; layer < KIT_LAYERS; ++layer) {
    kvt_frame_spec_t spec = kit.spec;
    spec.layer_begin = layer;
    spec.layer_end = layer + 1;
    CHECK(offsets[layer] % 64 == 0);
    CHECK_OK(kvt_codec_decode(kit.codec, base + offsets[layer], lengths[layer], &spec, &back.view, NULL));
  }
  for (int plane = 0; plane < KIT_LAYERS * 2; ++plane)
    CHECK(memcmp(back.data[plane], kit.rows.data[plane], KIT_BLOCK * KIT_ROW_BYTES) == 0);
}

static void Meter(void) {
  const int32_t parts[] = {KVT_PART_QUEUE, KVT_PART_TRANSFER, KVT_PART_DECODE, KVT_PART_FIRST_TOKEN};
  for (int i = 0; i < 4; ++i) CHECK_OK(kvt_request_part(kit.meter, kit.request, parts[i]));
  CHECK_OK(kvt_request_first_token(kit.meter, kit.request));
  CHECK_OK(kvt_request_count(kit.meter, kit.request, KVT_COUNTER_BYTES_MOVED, 4242));
  CHECK_OK(kvt_request_end(kit.meter, kit.request));
  CHECK_STATUS(kvt_request_end(kit.meter, kit.request), KVT_ERR_NOT_FOUND);
  char json[8192];
  size_t needed = 0;
  CHECK_OK(kvt_meter_json(kit.meter, json, sizeof json - 1, &needed));
  json[needed] = 0;
  CHECK(strstr(json, "\"schema\":1") != NULL && strstr(json, "\"raw\"") != NULL &&
        strstr(json, "4242") != NULL);
  CHECK_OK(kvt_meter_advice(kit.meter, json, sizeof json - 1, &needed));
  CHECK(needed > 20);
}

int main(void) {
  KitOpen(&kit);
  RUN(Base);
  RUN(Model);
  RUN(Rope);
  RUN(Keys);
  RUN(Raw);
  RUN(Int8);
  RUN(Kivi4);
  RUN(Kivi2);
  RUN(Kivi8);
  RUN(Fp8);
  RUN(Fp8E5m2);
  RUN(Rotated);
  RUN(Transfer);
  RUN(Stream);
  RUN(CacheMemory);
  RUN(CacheFile);
  RUN(Meter);
  KitClose(&kit);
  return Finish();
}
