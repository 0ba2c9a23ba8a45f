#include <kvartet/kvartet.h>
#include <stdio.h>

int main(void) {
  kvt_runtime_t runtime;
  kvt_cache_t cache;
  const char url[] = "file:readme-cache?capacity=1GiB";
  if (kvt_runtime_create(NULL, &runtime) != KVT_OK) return 1;
  kvt_status_t status = kvt_cache_open(runtime, url, sizeof url - 1, &cache);
  if (status != KVT_OK) {
    char text[KVT_ERROR_TEXT_MAX + 1] = "";
    kvt_last_error(text, KVT_ERROR_TEXT_MAX, NULL); /* names the field, the value or the path */
    fprintf(stderr, "%s: %s\n", kvt_status_name(status), text);
    return 1;
  }
  kvt_cache_stats_t stats = {.struct_size = sizeof stats};
  status = kvt_cache_stats(cache, &stats);
  printf("Kvartet %s: %llu frames in %s\n", kvt_version_string(), (unsigned long long)stats.frames, url);
  kvt_cache_destroy(cache);
  kvt_runtime_destroy(runtime);
  return status == KVT_OK ? 0 : 1;
}
