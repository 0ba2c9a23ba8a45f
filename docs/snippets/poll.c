/* Collecting completions from an event loop: the snippet of docs/guide.md. */
#include <kvartet/kvartet.h>
#include <poll.h>
#include <stdio.h>

/* [loop] */
/* Waits up to `milliseconds` for completions and reports each; returns how many there were, or -1. */
static int Drain(kvt_cache_t cache, int milliseconds) {
  int32_t fd;
  if (kvt_cache_event_fd(cache, &fd) != KVT_OK) return -1;
  struct pollfd readable = {fd, POLLIN, 0};
  if (poll(&readable, 1, milliseconds) < 0) return -1;
  kvt_completion_t done[16];
  size_t count = 0;
  if (kvt_cache_poll(cache, done, 16, &count) != KVT_OK) return -1;
  for (size_t i = 0; i < count; ++i)
    printf("operation %llu: %s\n", (unsigned long long)done[i].operation, kvt_status_name(done[i].status));
  return (int)count;
}
/* [/loop] */

int main(void) {
  kvt_runtime_t runtime;
  kvt_cache_t cache;
  if (kvt_runtime_create(NULL, &runtime) != KVT_OK) return 1;
  if (kvt_cache_open(runtime, "mem:", 4, &cache) != KVT_OK) return 1;
  /* A put of bytes that are no frame: submitted, and refused item by item. */
  const uint8_t key[KVT_KEY_BYTES] = {1}, junk[8] = {0};
  const uint64_t length = sizeof junk;
  kvt_status_t result;
  uint64_t operation;
  if (kvt_cache_submit_put(cache, key, 1, junk, &length, &result, 1000, &operation) != KVT_OK) return 1;
  const int count = Drain(cache, 5000);
  kvt_cache_destroy(cache);
  kvt_runtime_destroy(runtime);
  return count == 1 && result == KVT_ERR_CORRUPT ? 0 : 1;
}
