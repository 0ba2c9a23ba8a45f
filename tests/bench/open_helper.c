/* Prints the milliseconds that dlopen, a runtime and a mem: cache take in this fresh process. */
#include <dlfcn.h>
#include <kvartet/kvartet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(int argc, char** argv) {
  static const char url[] = "mem:?capacity=64MiB";
  struct timespec start, end;
  kvt_runtime_t runtime = 0;
  kvt_cache_t cache = 0;
  if (argc != 2) return 2;
  clock_gettime(CLOCK_MONOTONIC, &start);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  kvt_status_t (*create)(const kvt_runtime_options_t*, kvt_runtime_t*);
  kvt_status_t (*open)(kvt_runtime_t, const char*, size_t, kvt_cache_t*);
  *(void**)&create = dlsym(library, "kvt_runtime_create");
  *(void**)&open = dlsym(library, "kvt_cache_open");
  if (create == NULL || open == NULL || create(NULL, &runtime) != KVT_OK ||
      open(runtime, url, strlen(url), &cache) != KVT_OK)
    return 2;
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.4f\n", (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) / 1e6);
  return 0;
}
