/* Embeds the cache: KV of 64 tokens is stored in a directory, and after reopening found, loaded and compared.
 * Build: cc embed_cache.c $(pkg-config --cflags --libs kvartet)     Run: ./a.out [DIRECTORY] */
#include "sample.h"

enum { BLOCK = 16, BLOCKS = TOKENS / BLOCK };

int main(int argc, char** argv) {
  char url[512];
  int url_len = snprintf(url, sizeof url, "file:%s?capacity=1GiB", argc > 1 ? argv[1] : "embed_cache.dir");
  static kv_t made, loaded;
  KvInit(&made, 0x3c); /* what prefill left */
  KvInit(&loaded, 0);

  kvt_runtime_t runtime;
  Check(kvt_runtime_create(NULL, &runtime), "runtime");
  kvt_model_t model = NewModel();
  kvt_codec_t codec = NewCodec(model, "raw"); /* or "int8", "kivi4", "kivi2" */

  /* The prompt names its blocks: same tokens, model and namespace, same keys. */
  int32_t tokens[TOKENS];
  for (int i = 0; i < TOKENS; ++i) tokens[i] = i;
  kvt_key_options_t naming;
  kvt_key_options_init(&naming, sizeof naming);
  uint8_t keys[BLOCKS * KVT_KEY_BYTES];
  Check(kvt_keys_compute(model, &naming, tokens, TOKENS, keys, sizeof keys, NULL), "keys");

  kvt_cache_t cache;
  kvt_frame_spec_t spec;
  kvt_frame_spec_init(&spec, sizeof spec);
  kvt_status_t results[BLOCKS];
  uint64_t operation;
  Check(kvt_cache_open(runtime, url, (size_t)url_len, &cache), "open");
  Check(kvt_cache_submit_store(cache, codec, &made.view, &spec, BLOCK, keys, BLOCKS, results, WAIT_MS,
                               &operation),
        "store");
  Check(kvt_cache_wait(cache, operation, WAIT_MS, NULL), "store");
  Check(kvt_cache_close(cache, WAIT_MS), "close");
  kvt_cache_destroy(cache);

  size_t matched = 0;
  Check(kvt_cache_open(runtime, url, (size_t)url_len, &cache), "reopen");
  Check(kvt_cache_match(cache, keys, BLOCKS, &matched), "match");
  if (matched > 0) {
    Check(kvt_cache_submit_load(cache, codec, &loaded.view, &spec, BLOCK, keys, matched, results, WAIT_MS,
                                &operation),
          "load");
    Check(kvt_cache_wait(cache, operation, WAIT_MS, NULL), "load");
  }
  const int same = memcmp(made.planes, loaded.planes, sizeof made.planes) == 0;
  printf("%zu of %d blocks found again in %s; the bytes are %s\n", matched, BLOCKS, url,
         same ? "equal" : "NOT EQUAL");

  kvt_cache_destroy(cache);
  kvt_codec_destroy(codec);
  kvt_model_destroy(model);
  kvt_runtime_destroy(runtime);
  return same ? 0 : 1;
}
