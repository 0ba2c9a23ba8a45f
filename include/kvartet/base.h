/* Status codes, error text, handles and versions: what every other Kvartet header builds on.
 *
 * Conventions of the whole C ABI
 *  1. A fallible function returns kvt_status_t: KVT_OK, or a negative code. On failure its out-parameters are
 * untouched and nothing needs freeing; a wait that takes a completion writes it whatever the operation's
 * status.
 *  2. The text of the last failure on the calling thread is copied out by kvt_last_error(); read it before
 * the next call.
 *  3. Handles are 64-bit ids (type, generation, slot). 0 is null. A stale, foreign or invented id gives an
 * error, never a crash.
 *  4. Input bytes are a pointer and a length, borrowed for the call. Output bytes are a buffer, a capacity
 * and `needed`: (NULL, 0) probes; a buffer that is too small gives KVT_ERR_BUFFER_TOO_SMALL and sets
 * `needed`, the one out-parameter set then.
 *  5. Option structures begin with struct_size and are filled by their kvt_*_init(); the library never reads
 * past struct_size.
 *  6. Every call that can wait for other work or a peer takes timeout_ms, its deadline in milliseconds from
 * now; 0 does not wait; a negative one is refused. For a submitted operation it is the operation's deadline,
 * from the submit on. Calls on a cache in files that wait for the disk alone take none and say so.
 *  7. Strings are UTF-8 with an explicit length unless a parameter says that it ends with NUL.
 */
#ifndef KVARTET_BASE_H_
#define KVARTET_BASE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KVT_API __attribute__((visibility("default")))
#else
#define KVT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Major in the upper 16 bits, minor in the lower. Major 0: drafts, every change is named in CHANGELOG. */
#define KVT_ABI_VERSION ((uint32_t)0x00000001u)

typedef int32_t kvt_status_t;

enum {
  KVT_OK = 0,
  KVT_ERR_INTERNAL = -1,          /* a defect of the library; the text says where */
  KVT_ERR_INVALID_ARGUMENT = -10, /* a field or value that is never right; the text names both */
  KVT_ERR_OUT_OF_RANGE = -11,     /* a value right in kind but outside of what the object holds */
  KVT_ERR_BUFFER_TOO_SMALL = -12, /* `needed` says how much */
  KVT_ERR_UNSUPPORTED = -13,      /* understood, but this build or codec cannot do it */
  KVT_ERR_UNAVAILABLE = -14,      /* a module is missing; the text says what to install */
  KVT_ERR_NOT_FOUND = -20,
  KVT_ERR_ALREADY_EXISTS = -21,
  KVT_ERR_STALE_HANDLE = -30, /* the object was destroyed, or the id was never given out */
  KVT_ERR_WRONG_HANDLE = -31, /* a live object of another type */
  KVT_ERR_BUSY = -32,         /* in use by children or by another thread */
  KVT_ERR_CLOSED = -33,       /* close or destroy has begun */
  KVT_ERR_TIMEOUT = -40,      /* the deadline passed; the peer, if any, was making progress */
  KVT_ERR_CANCELLED = -41,    /* cancelled by either side */
  KVT_ERR_STALLED = -42,      /* the peer is connected but neither answers nor moves bytes */
  KVT_ERR_PEER_DEAD = -43,    /* the peer's end of the connection is gone */
  KVT_ERR_CORRUPT = -50,      /* a checksum, length or structure does not hold */
  KVT_ERR_MISMATCH =
      -51, /* whole, but of another model, shard, namespace, key or position; the text names the field */
  KVT_ERR_PROFILE_MISSING = -52,
  KVT_ERR_VERSION = -53, /* a format, wire or ABI version that this library does not speak */
  KVT_ERR_IO = -60,
  KVT_ERR_DISK_FULL = -61,
  KVT_ERR_LOCKED = -62, /* another process has the directory open */
  KVT_ERR_PERMISSION = -63,
  KVT_ERR_ADDRESS_IN_USE = -64,
  KVT_ERR_OUT_OF_MEMORY = -70,
  KVT_ERR_LIMIT = -71 /* a limit of the runtime, the peer or the format is reached */
};

/* Number of bytes of the text of the last failure is at most this, NUL included. */
#define KVT_ERROR_TEXT_MAX 1024

/* The version of the ABI that the loaded library speaks; compare its upper half with KVT_ABI_VERSION before
 * the first handle. Threads: any. Blocks: no. Since: 0.1. */
KVT_API uint32_t kvt_abi_version(void);

/* The library's version as text, for example "0.1.0". Owner: the library, for ever. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API const char* kvt_version_string(void);

/* The name of a status, for example "KVT_ERR_TIMEOUT"; "KVT_STATUS_UNKNOWN" for a number this library does
 * not know. Owner: the library, for ever. Threads: any. Blocks: no. Since: 0.1. */
KVT_API const char* kvt_status_name(kvt_status_t status);

/* Copies the text of the calling thread's last failure, without a NUL.
 * @param buf, cap     where to; (NULL, 0) probes.
 * @param needed       out, may be NULL if buf is not: the text's bytes.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT (buf is NULL and cap is not 0, or both
 * pointers are NULL). It has no text of its own.
 * The text is cleared by the next successful call on this thread that can fail. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API kvt_status_t kvt_last_error(char* buf, size_t cap, size_t* needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_BASE_H_ */
