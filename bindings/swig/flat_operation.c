/* Operations: what caches and nodes run beyond a call. A record owns everything that the library borrows, and
 * flat_submit_mu is held while one is submitted and while completions are polled, so that a completion always
 * finds its record. */
#include "flat_internal.h"

typedef struct flat_operation {
  flat_object_t object;
  int node;       /* 1: of a node's peer, 0: of a cache */
  uint64_t owner; /* the cache or node */
  uint64_t operation;
  int64_t id;
  int waiters; /* guarded by flat_mu, as are done and completion */
  int done;
  kvt_completion_t completion; /* once done */
  size_t count;
  kvt_status_t* results;
  uint8_t* keys;
  uint8_t* bytes; /* frames given, or slots to pull into */
  size_t stride;
  uint64_t* lengths;
  uint64_t* offsets; /* of a stream's parts in bytes; NULL: no stream */
  size_t parts;      /* guarded by flat_mu: parts that are in place */
  flat_memory_t* held;
  flat_view_t view;
} flat_operation_t;

static pthread_mutex_t flat_submit_mu = PTHREAD_MUTEX_INITIALIZER;
/* A waiter has left; with flat_mu. */
static pthread_cond_t flat_waiter_left = PTHREAD_COND_INITIALIZER;

static void FlatOperationEnd(flat_object_t* object) {
  flat_operation_t* const operation = (flat_operation_t*)object;
  free(operation->results);
  free(operation->keys);
  free(operation->bytes);
  free(operation->lengths);
  free(operation->offsets);
  FlatViewFree(&operation->view);
  FlatLet(operation->held);
  free(operation);
}

/* Until the library writes an item's status it was not reached. */
static void FlatUnreached(kvt_status_t* results, size_t count) {
  for (size_t i = 0; i < count; ++i) results[i] = KVT_ERR_CANCELLED;
}

/* A record for `count` items with copies of keys; NULL when there is no memory. */
static flat_operation_t* FlatOperationNew(int node, int64_t owner, const uint8_t* keys, size_t count) {
  flat_operation_t* const operation = calloc(1, sizeof *operation);
  if (operation == NULL) return NULL;
  operation->object.type = FLAT_OPERATION;
  operation->object.end = FlatOperationEnd;
  operation->node = node;
  operation->owner = (uint64_t)owner;
  operation->count = count;
  operation->results = calloc(count + 1, sizeof *operation->results);
  operation->lengths = calloc(count + 1, sizeof *operation->lengths);
  operation->keys = FlatCopy(keys, count * KVT_KEY_BYTES);
  if (operation->results == NULL || operation->lengths == NULL || operation->keys == NULL) {
    FlatOperationEnd(&operation->object);
    return NULL;
  }
  FlatUnreached(operation->results, count);
  return operation;
}

static void FlatCancel(int node, uint64_t owner, uint64_t operation) {
  if (node) {
    kvt_node_cancel(owner, operation);
  } else {
    kvt_cache_cancel(owner, operation);
  }
}

/* Enters a submitted operation, or ends the record of one that was refused. flat_submit_mu is held. */
static int64_t FlatOperationEnter(flat_operation_t* operation, kvt_status_t status, flat_error_t error) {
  if (status != KVT_OK) {
    const int64_t result = FlatResult(status, 0, error);
    FlatOperationEnd(&operation->object);
    return result;
  }
  pthread_mutex_lock(&flat_mu);
  operation->id = FlatInsertLocked(&operation->object);
  pthread_mutex_unlock(&flat_mu);
  if (operation->id > 0) return operation->id;
  FlatCancel(operation->node, operation->owner, operation->operation);
  FlatOperationEnd(&operation->object);
  return FlatNoMemory(error, sizeof(flat_slot_t));
}

static kvt_status_t FlatWait(int node, uint64_t owner, uint64_t operation, int64_t timeout_ms,
                             kvt_completion_t* completion) {
  return node ? kvt_node_wait(owner, operation, timeout_ms, completion)
              : kvt_cache_wait(owner, operation, timeout_ms, completion);
}

/* Waits inside one call for an operation that borrows the caller's memory: it has ended when this returns.
 * Gives the completion's items, or the first failure. */
static int64_t FlatFinish(int node, int64_t owner, uint64_t operation, int64_t timeout_ms,
                          flat_error_t error) {
  enum { GRACE_MS = 1000 }; /* the operation's own deadline comes first and says which item it met */
  kvt_completion_t completion = {0};
  const int64_t wait_ms = timeout_ms > INT64_MAX - GRACE_MS ? timeout_ms : timeout_ms + GRACE_MS;
  kvt_status_t status = FlatWait(node, (uint64_t)owner, operation, wait_ms, &completion);
  int64_t result = FlatResult(status, (int64_t)completion.items_ok, error);
  if (completion.kind == 0) { /* not ended */
    FlatCancel(node, (uint64_t)owner, operation);
    FlatWait(node, (uint64_t)owner, operation, 0, NULL);
  }
  return result;
}

static const flat_field_t kCompletionFields[] = {
    FLAT_FIELD(kvt_completion_t, operation, FLAT_U64), FLAT_FIELD(kvt_completion_t, status, FLAT_I32),
    FLAT_FIELD(kvt_completion_t, kind, FLAT_U32),      FLAT_FIELD(kvt_completion_t, items_ok, FLAT_U64),
    FLAT_FIELD(kvt_completion_t, items, FLAT_U64),     FLAT_FIELD(kvt_completion_t, bytes, FLAT_U64),
};

/* Gives the record's id to a completion and keeps what it says. flat_mu is held. */
static void FlatKeepLocked(flat_operation_t* operation, kvt_completion_t* completion) {
  completion->operation = (uint64_t)operation->id;
  if (operation->offsets != NULL && completion->items_ok > operation->parts) {
    operation->parts = (size_t)completion->items_ok;
  }
  if (completion->kind == KVT_COMPLETION_DONE) {
    operation->done = 1;
    operation->completion = *completion;
  }
}

/* Gives the record's id to a completion and keeps it; 0 when nobody has the record any more. */
static int64_t FlatAdopt(int node, uint64_t owner, kvt_completion_t* completion) {
  int64_t id = 0;
  pthread_mutex_lock(&flat_mu);
  for (uint32_t i = 0; i < flat_slot_count && id == 0; ++i) {
    flat_operation_t* const operation = (flat_operation_t*)flat_slots[i].object;
    if (operation == NULL || operation->object.type != FLAT_OPERATION || operation->node != node ||
        operation->owner != owner || operation->operation != completion->operation) {
      continue;
    }
    id = operation->id;
    FlatKeepLocked(operation, completion);
  }
  pthread_mutex_unlock(&flat_mu);
  return id;
}

static int64_t FlatPoll(int node, int64_t owner, uint8_t* buf, size_t cap, flat_error_t error) {
  enum { BATCH = 64 };
  kvt_completion_t batch[BATCH];
  size_t room = cap / KVTF_COMPLETION_BYTES, written = 0;
  if (room == 0) {
    return FlatRefuse(error, KVT_ERR_INVALID_ARGUMENT, "capacity is %zu; a completion has %d bytes", cap,
                      KVTF_COMPLETION_BYTES);
  }
  kvt_status_t status = KVT_OK;
  int64_t result = 0;
  pthread_mutex_lock(&flat_submit_mu);
  while (room > written) {
    size_t count = 0;
    const size_t wanted = room - written < BATCH ? room - written : BATCH;
    status = node ? kvt_node_poll((uint64_t)owner, batch, wanted, &count)
                  : kvt_cache_poll((uint64_t)owner, batch, wanted, &count);
    if (status != KVT_OK || count == 0) break;
    for (size_t i = 0; i < count; ++i) {
      if (FlatAdopt(node, (uint64_t)owner, &batch[i]) == 0) continue;
      FlatWriteRecord(kCompletionFields, FLAT_COUNT(kCompletionFields), &batch[i],
                      buf + written++ * KVTF_COMPLETION_BYTES);
    }
  }
  result = FlatResult(status, (int64_t)(written * KVTF_COMPLETION_BYTES), error);
  pthread_mutex_unlock(&flat_submit_mu);
  return result;
}

/* Copies the completion of an operation that has ended. @return 1 when it has. */
static int FlatEnded(flat_operation_t* operation, kvt_completion_t* completion) {
  pthread_mutex_lock(&flat_mu);
  const int done = operation->done;
  if (done) *completion = operation->completion;
  pthread_mutex_unlock(&flat_mu);
  return done;
}

/* Waits in the library, which gives the completion to one of those that wait or poll, and keeps it. */
static kvt_status_t FlatWaitAndKeep(flat_operation_t* operation, int64_t timeout_ms,
                                    kvt_completion_t* completion) {
  pthread_mutex_lock(&flat_mu);
  ++operation->waiters;
  pthread_mutex_unlock(&flat_mu);
  const kvt_status_t status =
      FlatWait(operation->node, operation->owner, operation->operation, timeout_ms, completion);
  pthread_mutex_lock(&flat_mu);
  --operation->waiters;
  if (completion->kind != 0) FlatKeepLocked(operation, completion);
  pthread_cond_broadcast(&flat_waiter_left);
  pthread_mutex_unlock(&flat_mu);
  return status;
}

/* Copies the completion that another thread was given. It has been given, so every waiter is about to leave
 * and a poll ends soon. @return 1 when somebody kept it. */
static int FlatKeptElsewhere(flat_operation_t* operation, kvt_completion_t* completion) {
  pthread_mutex_lock(&flat_submit_mu);
  pthread_mutex_lock(&flat_mu);
  while (!operation->done && operation->waiters > 0) pthread_cond_wait(&flat_waiter_left, &flat_mu);
  const int done = operation->done;
  if (done) *completion = operation->completion;
  pthread_mutex_unlock(&flat_mu);
  pthread_mutex_unlock(&flat_submit_mu);
  return done;
}

int64_t kvtf_operation_wait(int64_t id, int64_t timeout_ms, uint8_t* completion, size_t completion_cap,
                            uint8_t* err, size_t err_cap) {
  flat_operation_t* const operation = FlatHold(id, FLAT_OPERATION);
  if (operation == NULL) return FlatStale("operation", id, FLAT_ERROR);
  kvt_completion_t ended = {0};
  int64_t result = 0;
  int kept = FlatEnded(operation, &ended);
  if (!kept) {
    const kvt_status_t status = FlatWaitAndKeep(operation, timeout_ms, &ended);
    result = FlatResult(status, 0, FLAT_ERROR);
    kept = status == KVT_ERR_NOT_FOUND && ended.kind == 0 && FlatKeptElsewhere(operation, &ended);
  }
  if (kept) {
    result = ended.status == KVT_OK
                 ? 0
                 : FlatRefuse(FLAT_ERROR, ended.status, "%llu of %llu items are complete",
                              (unsigned long long)ended.items_ok, (unsigned long long)ended.items);
  }
  if (ended.kind != 0) {
    FlatRecordOut(kCompletionFields, FLAT_COUNT(kCompletionFields), &ended, completion, completion_cap);
  }
  FlatLet(operation);
  return result;
}

int64_t kvtf_operation_cancel(int64_t id, uint8_t* err, size_t err_cap) {
  flat_operation_t* const operation = FlatHold(id, FLAT_OPERATION);
  if (operation == NULL) return FlatStale("operation", id, FLAT_ERROR);
  kvt_completion_t ended;
  int64_t result = 0;
  if (!FlatEnded(operation, &ended)) {
    const kvt_status_t status = operation->node ? kvt_node_cancel(operation->owner, operation->operation)
                                                : kvt_cache_cancel(operation->owner, operation->operation);
    /* Not found: it has ended, and another thread was given its completion. */
    if (status != KVT_ERR_NOT_FOUND) result = FlatResult(status, 0, FLAT_ERROR);
  }
  FlatLet(operation);
  return result;
}

static int64_t FlatEndedCheck(flat_operation_t* operation, flat_error_t error) {
  kvt_completion_t ended;
  if (FlatEnded(operation, &ended)) return 0;
  return FlatRefuse(error, KVT_ERR_BUSY, "the operation has not ended; wait for it or poll it first");
}

int64_t kvtf_operation_results(int64_t id, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  flat_operation_t* const operation = FlatHold(id, FLAT_OPERATION);
  if (operation == NULL) return FlatStale("operation", id, FLAT_ERROR);
  int64_t result = FlatEndedCheck(operation, FLAT_ERROR);
  if (result == 0) {
    result = FlatCopyOut(operation->results, operation->count * sizeof(kvt_status_t), buf, cap);
  }
  FlatLet(operation);
  return result;
}

/* What a pull brought for an item. */
static int64_t FlatItem(flat_operation_t* operation, int64_t item, uint8_t* buf, size_t cap,
                        flat_error_t error) {
  if (operation->stride == 0 || item < 0 || (size_t)item >= operation->count) {
    return FlatRefuse(error, KVT_ERR_OUT_OF_RANGE, "item is %lld; the operation pulled %zu", (long long)item,
                      operation->stride == 0 ? 0 : operation->count);
  }
  if (operation->results[item] != KVT_OK) {
    return FlatRefuse(error, operation->results[item], "item %lld was not pulled; it has %llu bytes",
                      (long long)item, (unsigned long long)operation->lengths[item]);
  }
  return FlatCopyOut(operation->bytes + (size_t)item * operation->stride, (size_t)operation->lengths[item],
                     buf, cap);
}

/* A part of a stream, which is in place before the stream ends. */
static int64_t FlatPart(flat_operation_t* operation, int64_t part, uint8_t* buf, size_t cap,
                        flat_error_t error) {
  pthread_mutex_lock(&flat_mu);
  const size_t parts = operation->parts;
  pthread_mutex_unlock(&flat_mu);
  if (part < 0 || (size_t)part >= parts) {
    return FlatRefuse(error, KVT_ERR_OUT_OF_RANGE, "item is %lld; %zu parts are in place", (long long)part,
                      parts);
  }
  return FlatCopyOut(operation->bytes + operation->offsets[part], (size_t)operation->lengths[part], buf, cap);
}

int64_t kvtf_operation_frame(int64_t id, int64_t item, uint8_t* buf, size_t cap, uint8_t* err,
                             size_t err_cap) {
  flat_operation_t* const operation = FlatHold(id, FLAT_OPERATION);
  if (operation == NULL) return FlatStale("operation", id, FLAT_ERROR);
  int64_t result = 0;
  if (operation->offsets != NULL) {
    result = FlatPart(operation, item, buf, cap, FLAT_ERROR);
  } else {
    result = FlatEndedCheck(operation, FLAT_ERROR);
    if (result == 0) result = FlatItem(operation, item, buf, cap, FLAT_ERROR);
  }
  FlatLet(operation);
  return result;
}

void kvtf_operation_release(int64_t id) {
  flat_operation_t* const operation = FlatRemove(id, FLAT_OPERATION);
  kvt_completion_t ended;
  if (operation == NULL) return;
  if (!FlatEnded(operation, &ended)) {
    FlatCancel(operation->node, operation->owner, operation->operation);
    FlatWait(operation->node, operation->owner, operation->operation, 0, NULL);
  }
  FlatLet(operation);
}
