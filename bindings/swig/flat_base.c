/* Versions, records of defaults, the wait for a descriptor, and the facade's own objects: codecs (with the
 * row sizes that bound a view), calibrations, memory, and operations. The table of objects is guarded by
 * flat_mu; an object stays alive while somebody holds it. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "flat_internal.h"

enum { FLAT_CODEC = 0x71, FLAT_MEMORY = 0x72, FLAT_OPERATION = 0x73, FLAT_CALIBRATION = 0x74 };

typedef struct flat_object {
  int type;
  int refs; /* guarded by flat_mu; the table's own is one of them */
  void (*end)(struct flat_object* object);
} flat_object_t;

typedef struct flat_slot {
  flat_object_t* object; /* NULL: free */
  uint32_t generation;
  uint32_t next_free;
} flat_slot_t;

static pthread_mutex_t flat_mu = PTHREAD_MUTEX_INITIALIZER;
static flat_slot_t* flat_slots;
static uint32_t flat_slot_count, flat_slot_cap;
static uint32_t flat_free = UINT32_MAX;

/* An id is type (7 bits) | generation (24) | slot (32); the types are not those of the library. flat_mu is
 * held. */
static int64_t FlatInsertLocked(flat_object_t* object) {
  uint32_t slot = flat_free;
  if (slot != UINT32_MAX) {
    flat_free = flat_slots[slot].next_free;
  } else {
    if (flat_slot_count == flat_slot_cap) {
      const uint32_t cap = flat_slot_cap == 0 ? 64 : flat_slot_cap * 2;
      flat_slot_t* const slots = realloc(flat_slots, cap * sizeof *slots);
      if (slots == NULL) return KVT_ERR_OUT_OF_MEMORY;
      flat_slots = slots;
      flat_slot_cap = cap;
    }
    slot = flat_slot_count++;
    flat_slots[slot].generation = 0;
  }
  flat_slots[slot].object = object;
  object->refs = 1;
  return (int64_t)object->type << 56 | (int64_t)flat_slots[slot].generation << 32 | slot;
}

static flat_slot_t* FlatSlotLocked(int64_t id, int type) {
  const uint32_t slot = (uint32_t)id;
  if (id < 0 || (id >> 56) != type || slot >= flat_slot_count) return NULL;
  flat_slot_t* const found = &flat_slots[slot];
  return found->object != NULL && found->generation == ((uint64_t)id >> 32 & 0xffffff) ? found : NULL;
}

/* Takes a hold; NULL when there is no such object. Let go with FlatLet. */
static void* FlatHold(int64_t id, int type) {
  pthread_mutex_lock(&flat_mu);
  flat_slot_t* const slot = FlatSlotLocked(id, type);
  flat_object_t* const object = slot != NULL ? slot->object : NULL;
  if (object != NULL) ++object->refs;
  pthread_mutex_unlock(&flat_mu);
  return object;
}

static void FlatLet(void* pointer) {
  flat_object_t* const object = pointer;
  if (object == NULL) return;
  pthread_mutex_lock(&flat_mu);
  const int last = --object->refs == 0;
  pthread_mutex_unlock(&flat_mu);
  if (last) object->end(object);
}

static void FlatVacateLocked(int64_t id, flat_slot_t* slot) {
  slot->object = NULL;
  slot->generation = (slot->generation + 1) & 0xffffff;
  slot->next_free = flat_free;
  flat_free = (uint32_t)id;
}

/* Takes an object out of the table; the caller owns the table's hold. */
static void* FlatRemove(int64_t id, int type) {
  pthread_mutex_lock(&flat_mu);
  flat_slot_t* const slot = FlatSlotLocked(id, type);
  flat_object_t* const object = slot != NULL ? slot->object : NULL;
  if (object != NULL) FlatVacateLocked(id, slot);
  pthread_mutex_unlock(&flat_mu);
  return object;
}

static int64_t FlatInsert(flat_object_t* object, flat_error_t error) {
  pthread_mutex_lock(&flat_mu);
  const int64_t id = FlatInsertLocked(object);
  pthread_mutex_unlock(&flat_mu);
  if (id < 0) {
    object->end(object);
    return FlatNoMemory(error, sizeof(flat_slot_t));
  }
  return id;
}

static int64_t FlatStale(const char* what, int64_t id, flat_error_t error) {
  const int type = id > 0 ? (int)(id >> 56) : 0;
  const int other = (type >= 1 && type <= 10) || (type >= FLAT_CODEC && type <= FLAT_CALIBRATION);
  if (other && strcmp(what, type == FLAT_CODEC         ? "codec"
                            : type == FLAT_MEMORY      ? "memory"
                            : type == FLAT_OPERATION   ? "operation"
                            : type == FLAT_CALIBRATION ? "calibration"
                                                       : "") != 0) {
    return FlatRefuse(error, KVT_ERR_WRONG_HANDLE, "handle 0x%llx is no %s", (unsigned long long)id, what);
  }
  return FlatRefuse(error, KVT_ERR_STALE_HANDLE, "%s 0x%llx does not exist", what, (unsigned long long)id);
}

/* Memory. */

typedef struct flat_memory {
  flat_object_t object;
  size_t bytes;
  uint8_t* data;
} flat_memory_t;

static void FlatMemoryEnd(flat_object_t* object) {
  free(((flat_memory_t*)object)->data);
  free(object);
}

int64_t kvtf_memory_create(int64_t bytes, uint8_t* err, size_t err_cap) {
  if (bytes <= 0) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "bytes is %lld; it is at least 1",
                      (long long)bytes);
  }
  flat_memory_t* const memory = calloc(1, sizeof *memory);
  if (memory == NULL) return FlatNoMemory(FLAT_ERROR, sizeof *memory);
  memory->object.type = FLAT_MEMORY;
  memory->object.end = FlatMemoryEnd;
  memory->bytes = (size_t)bytes;
  memory->data = calloc(1, (size_t)bytes);
  if (memory->data == NULL) {
    free(memory);
    return FlatNoMemory(FLAT_ERROR, (size_t)bytes);
  }
  return FlatInsert(&memory->object, FLAT_ERROR);
}

int64_t kvtf_memory_destroy(int64_t id, uint8_t* err, size_t err_cap) {
  pthread_mutex_lock(&flat_mu);
  flat_slot_t* const slot = FlatSlotLocked(id, FLAT_MEMORY);
  flat_object_t* const object = slot != NULL ? slot->object : NULL;
  const int busy = object != NULL && object->refs > 1;
  if (object != NULL && !busy) FlatVacateLocked(id, slot);
  pthread_mutex_unlock(&flat_mu);
  if (busy) return FlatRefuse(FLAT_ERROR, KVT_ERR_BUSY, "an operation holds the memory");
  FlatLet(object);
  return 0;
}

/* Holds memory when [offset, offset + len) is inside; else NULL and `refusal`. */
static flat_memory_t* FlatMemoryRange(int64_t id, int64_t offset, size_t len, int64_t* refusal,
                                      flat_error_t error) {
  flat_memory_t* const memory = FlatHold(id, FLAT_MEMORY);
  if (memory == NULL) {
    *refusal = FlatStale("memory", id, error);
    return NULL;
  }
  if (offset < 0 || (size_t)offset > memory->bytes || len > memory->bytes - (size_t)offset) {
    *refusal =
        FlatRefuse(error, KVT_ERR_OUT_OF_RANGE, "offset %lld and length %zu leave the memory's %zu bytes",
                   (long long)offset, len, memory->bytes);
    FlatLet(memory);
    return NULL;
  }
  return memory;
}

int64_t kvtf_memory_write(int64_t id, int64_t offset, const uint8_t* data, size_t len, uint8_t* err,
                          size_t err_cap) {
  int64_t refusal = 0;
  flat_memory_t* const memory = FlatMemoryRange(id, offset, len, &refusal, FLAT_ERROR);
  if (memory == NULL) return refusal;
  if (len > 0) memcpy(memory->data + offset, data, len);
  FlatLet(memory);
  return (int64_t)len;
}

int64_t kvtf_memory_read(int64_t id, int64_t offset, uint8_t* buf, size_t cap, uint8_t* err, size_t err_cap) {
  int64_t refusal = 0;
  flat_memory_t* const memory = FlatMemoryRange(id, offset, cap, &refusal, FLAT_ERROR);
  if (memory == NULL) return refusal;
  if (cap > 0) memcpy(buf, memory->data + offset, cap);
  FlatLet(memory);
  return (int64_t)cap;
}

/* Versions and waiting. */

int64_t kvtf_abi_version(void) { return kvt_abi_version(); }

int64_t kvtf_header_abi_version(void) { return KVT_ABI_VERSION; }

int64_t kvtf_version(uint8_t* buf, size_t cap) {
  const char* const text = kvt_version_string();
  return FlatCopyOut(text, strlen(text), buf, cap);
}

int64_t kvtf_status_name(int64_t status, uint8_t* buf, size_t cap) {
  /* A number that is no 32-bit status is one that the library does not know. */
  const char* const text = kvt_status_name(status == (kvt_status_t)status ? (kvt_status_t)status : 1);
  return FlatCopyOut(text, strlen(text), buf, cap);
}

int64_t kvtf_event_wait(int64_t fd, int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  if (fd < 0 || fd > INT32_MAX || timeout_ms < 0) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT,
                      "fd is %lld and timeout_ms %lld; neither is negative", (long long)fd,
                      (long long)timeout_ms);
  }
  struct pollfd descriptor = {(int)fd, POLLIN, 0};
  const int ready = poll(&descriptor, 1, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
  if (ready < 0 && errno != EINTR) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_IO, "poll of descriptor %lld: errno %d", (long long)fd, errno);
  }
  if (ready > 0 && (descriptor.revents & POLLNVAL) != 0) {
    return FlatRefuse(FLAT_ERROR, KVT_ERR_INVALID_ARGUMENT, "fd %lld is not open", (long long)fd);
  }
  return ready > 0 ? 1 : 0;
}

/* Runtime. */

static const flat_field_t kRuntimeFields[] = {
    FLAT_FIELD(kvt_runtime_options_t, threads, FLAT_U32),
    FLAT_FIELD(kvt_runtime_options_t, memory_limit_bytes, FLAT_U64),
};

int64_t kvtf_runtime_create(const uint8_t* options, size_t options_len, uint8_t* err, size_t err_cap) {
  kvt_runtime_options_t values;
  kvt_runtime_options_init(&values, sizeof values);
  const int64_t read = FlatReadRecord("runtime", kRuntimeFields, FLAT_COUNT(kRuntimeFields), options,
                                      options_len, &values, FLAT_ERROR);
  if (read < 0) return read;
  kvt_runtime_t runtime = 0;
  const kvt_status_t status = kvt_runtime_create(&values, &runtime);
  return FlatResult(status, (int64_t)runtime, FLAT_ERROR);
}

int64_t kvtf_runtime_close(int64_t runtime, int64_t timeout_ms, uint8_t* err, size_t err_cap) {
  return FlatResult(kvt_runtime_close((uint64_t)runtime, timeout_ms), 0, FLAT_ERROR);
}

void kvtf_runtime_destroy(int64_t runtime) { kvt_runtime_destroy((uint64_t)runtime); }

int64_t kvtf_runtime_memory_used(int64_t runtime, uint8_t* err, size_t err_cap) {
  uint64_t bytes = 0;
  const kvt_status_t status = kvt_runtime_memory_used((uint64_t)runtime, &bytes);
  return FlatResult(status, (int64_t)bytes, FLAT_ERROR);
}
