/* Calls of several items, which wait inside the call or become an operation. */
#include "flat_internal.h"

/* Lengths and results of a call in aligned memory: on the stack for a few items. */
enum { FLAT_FEW = 16 };

typedef struct flat_items {
  uint64_t few_lengths[FLAT_FEW];
  kvt_status_t few_results[FLAT_FEW];
  uint64_t* lengths;
  kvt_status_t* results;
} flat_items_t;

static int64_t FlatItemsBegin(flat_items_t* items, size_t count, flat_error_t error) {
  items->lengths = items->few_lengths;
  items->results = items->few_results;
  if (count > FLAT_FEW) {
    items->lengths = malloc(count * sizeof *items->lengths);
    items->results = malloc(count * sizeof *items->results);
    if (items->lengths == NULL || items->results == NULL) {
      free(items->lengths);
      free(items->results);
      return FlatNoMemory(error, count * 12);
    }
  }
  memset(items->lengths, 0, count * sizeof *items->lengths);
  FlatUnreached(items->results, count);
  return 0;
}

/* Waits for the end of a call that was submitted with `status`, copies out what the items became (`lengths`
 * may be NULL), and ends them. Gives the completion's items, or the first failure. */
static int64_t FlatItemsFinish(flat_items_t* items, size_t count, int node, int64_t owner,
                               kvt_status_t status, uint64_t operation, int64_t timeout_ms, uint8_t* lengths,
                               uint8_t* results, flat_error_t error) {
  int64_t result = FlatResult(status, 0, error);
  if (status == KVT_OK) {
    result = FlatFinish(node, owner, operation, timeout_ms, error);
    if (count > 0 && lengths != NULL) memcpy(lengths, items->lengths, count * sizeof(uint64_t));
    if (count > 0) memcpy(results, items->results, count * sizeof(kvt_status_t));
  }
  if (items->lengths != items->few_lengths) {
    free(items->lengths);
    free(items->results);
  }
  return result;
}

/* Frames to put into a cache or to push to a peer: the two calls of the library have one shape. */

typedef kvt_status_t (*flat_frames_fn)(uint64_t target, const uint8_t* keys, size_t count,
                                       const uint8_t* frames, const uint64_t* lengths, kvt_status_t* results,
                                       int64_t timeout_ms, uint64_t* operation);

typedef struct flat_frames {
  int node; /* 1: `target` is a peer and `owner` its node; 0: both are the cache */
  int64_t owner, target;
  const uint8_t *keys, *frames, *lengths;
  size_t keys_len, frames_len, lengths_len;
  int64_t timeout_ms;
} flat_frames_t;

#define FLAT_FRAMES(node, owner, target) \
  ((flat_frames_t){node, owner, target, keys, frames, lengths, keys_len, frames_len, lengths_len, timeout_ms})

/* Checks that there are as many lengths as keys, and that they fill the frames. @return the number of keys.
 */
static int64_t FlatFramesCheck(const flat_frames_t* frames, flat_error_t error) {
  const int64_t count = FlatKeyCount(frames->keys_len, error);
  if (count < 0) return count;
  if (frames->lengths_len != (size_t)count * sizeof(uint64_t)) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "lengths are %zu bytes; %lld keys need %lld",
                      frames->lengths_len, (long long)count, (long long)count * 8);
  }
  size_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t length;
    memcpy(&length, frames->lengths + i * 8, sizeof length);
    if (length > frames->frames_len - sum) {
      return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "length %lld is %llu; %zu bytes of frames are left",
                        (long long)i, (unsigned long long)length, frames->frames_len - sum);
    }
    sum += (size_t)length;
  }
  if (sum != frames->frames_len) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "frames are %zu bytes; the lengths add up to %zu",
                      frames->frames_len, sum);
  }
  return count;
}

static int64_t FlatResultsCheck(int64_t count, size_t results_cap, flat_error_t error) {
  if (results_cap / sizeof(kvt_status_t) >= (size_t)count) return 0;
  return FlatRefuse(error, KVT_ERR_BUFFER_TOO_SMALL, "results have %zu bytes; %lld keys need %lld",
                    results_cap, (long long)count, (long long)count * 4);
}

static int64_t FlatFramesNow(flat_frames_fn function, const flat_frames_t* frames, uint8_t* results,
                             size_t results_cap, flat_error_t error) {
  const int64_t count = FlatFramesCheck(frames, error);
  if (count < 0) return count;
  int64_t result = FlatResultsCheck(count, results_cap, error);
  flat_items_t items;
  if (result == 0) result = FlatItemsBegin(&items, (size_t)count, error);
  if (result < 0) return result;
  if (count > 0) memcpy(items.lengths, frames->lengths, frames->lengths_len);
  uint64_t operation = 0;
  const kvt_status_t status = function((uint64_t)frames->target, frames->keys, (size_t)count, frames->frames,
                                       items.lengths, items.results, frames->timeout_ms, &operation);
  return FlatItemsFinish(&items, (size_t)count, frames->node, frames->owner, status, operation,
                         frames->timeout_ms, NULL, results, error);
}

static int64_t FlatFramesSubmit(flat_frames_fn function, const flat_frames_t* frames, flat_error_t error) {
  const int64_t count = FlatFramesCheck(frames, error);
  if (count < 0) return count;
  flat_operation_t* const operation =
      FlatOperationNew(frames->node, frames->owner, frames->keys, (size_t)count);
  if (operation == NULL) return FlatNoMemory(error, frames->keys_len);
  operation->bytes = FlatCopy(frames->frames, frames->frames_len);
  if (operation->bytes == NULL) {
    FlatOperationEnd(&operation->object);
    return FlatNoMemory(error, frames->frames_len);
  }
  if (count > 0) memcpy(operation->lengths, frames->lengths, frames->lengths_len);
  pthread_mutex_lock(&flat_submit_mu);
  const kvt_status_t status =
      function((uint64_t)frames->target, operation->keys, (size_t)count, operation->bytes, operation->lengths,
               operation->results, frames->timeout_ms, &operation->operation);
  const int64_t result = FlatOperationEnter(operation, status, error);
  pthread_mutex_unlock(&flat_submit_mu);
  return result;
}
