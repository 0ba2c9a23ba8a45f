/* The runtime: threads, memory limit and log sink. The host creates one and hands it to caches, nodes and
 * meters.
 *
 * The library starts no thread but the runtime's, installs no signal handler and keeps no global state. */
#ifndef KVARTET_RUNTIME_H_
#define KVARTET_RUNTIME_H_

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_runtime_t;

enum { KVT_LOG_DEBUG = 10, KVT_LOG_INFO = 20, KVT_LOG_WARNING = 30, KVT_LOG_ERROR = 40 };

/* Receives a line of log. Called on any runtime or calling thread, never under a lock of the library; it may
 * call the library, but for functions whose threads are "any but the runtime's" (destroys and cancels).
 * `message` is borrowed for the call and not NUL-terminated. */
typedef void (*kvt_log_fn)(void* context, int32_t level, const char* message, size_t length);

typedef struct kvt_runtime_options {
  uint32_t struct_size;
  uint32_t threads;            /* worker threads, 1 to 256; default 2 */
  uint64_t memory_limit_bytes; /* for what the library allocates for frames and buffers; 0: none. Default 0 */
  kvt_log_fn log;              /* NULL: no log at all. Default NULL */
  void* log_context;           /* must live until the runtime is destroyed */
  int32_t log_level;           /* least level reported; default KVT_LOG_WARNING */
  uint32_t reserved;           /* 0 */
} kvt_runtime_options_t;

/* Fills `options` with the defaults for a structure of `struct_size` bytes. A NULL pointer or a size below
 * that of the first release is ignored. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_runtime_options_init(kvt_runtime_options_t* options, size_t struct_size);

/* Creates a runtime and starts its threads.
 * @param options  NULL for the defaults.
 * @param runtime  out.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (the field and value are named); KVT_ERR_OUT_OF_MEMORY;
 * KVT_ERR_LIMIT (threads or descriptors of the process).
 * Owner: the caller, who ends it with kvt_runtime_destroy before the library may be unloaded. Threads: any.
 * Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_runtime_create(const kvt_runtime_options_t* options, kvt_runtime_t* runtime);

/* Waits until the runtime's caches, nodes and meters are destroyed and no work is left.
 * @return KVT_OK; KVT_ERR_BUSY when objects of this runtime are still open at the deadline;
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: up to
 * timeout_ms. Since: 0.1. */
KVT_API kvt_status_t kvt_runtime_close(kvt_runtime_t runtime, int64_t timeout_ms);

/* Destroys the runtime. Objects that still use it keep it alive until they are destroyed too. 0 and stale ids
 * are accepted. Threads: any but the runtime's own. Blocks: for running work to end, never for a peer. Since:
 * 0.1. */
KVT_API void kvt_runtime_destroy(kvt_runtime_t runtime);

/* Bytes that the library has allocated for frames and buffers under this runtime.
 * @return KVT_OK; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_runtime_memory_used(kvt_runtime_t runtime, uint64_t* bytes);

/* What a finished operation reports. Operations belong to a cache or a node and are drained from it in
 * batches. */
typedef struct kvt_completion {
  uint64_t operation;  /* the id that submit returned */
  kvt_status_t status; /* KVT_OK only if every item of the operation is KVT_OK; otherwise that of the first
                          item that failed */
  uint32_t kind;       /* KVT_COMPLETION_DONE or KVT_COMPLETION_PART */
  uint64_t items_ok;   /* items (blocks, frames, parts) that are complete and checked */
  uint64_t items;      /* items of the operation; for a stream 0 until it is known */
  uint64_t bytes;      /* bytes moved for the items that are complete */
} kvt_completion_t;

enum {
  KVT_COMPLETION_DONE = 1, /* the operation has ended; the library no longer touches the caller's memory */
  KVT_COMPLETION_PART = 2  /* a stream's next part is in place and checked; the operation goes on */
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_RUNTIME_H_ */
