/* A cache keeps frames by key, in memory or in a directory, and moves them into and out of views.
 *
 * Places are URLs:
 *   mem:?capacity=4GiB                      the process's memory
 *   file:/var/cache/kvartet?capacity=200GiB a directory of append-only segments; one process at a time
 * Sizes take B, KB, MB, GB, TB, KiB, MiB, GiB, TiB; without a capacity there is no limit; the least is 1 B,
 * for file: 1 MiB. When the capacity is reached the least recently used frames go.
 *
 * A store is visible once it is whole and checksummed; a failed or torn one never is. A put of file: that
 * ended with KVT_OK has been flushed: it survives the death of the process, and of the machine if the disk
 * keeps its word (docs/file-format.md). mem: counts against the runtime's memory limit and evicts when that
 * is reached. */
#ifndef KVARTET_CACHE_H_
#define KVARTET_CACHE_H_

#include "base.h"
#include "codec.h"
#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_cache_t;

/* Opens a cache.
 * @param url  see above; NUL-terminated is not needed.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (names the part of the URL); KVT_ERR_LOCKED; KVT_ERR_PERMISSION;
 * KVT_ERR_NOT_FOUND (the parent directory); KVT_ERR_IO; KVT_ERR_DISK_FULL; KVT_ERR_VERSION (a directory of
 * another format version); KVT_ERR_CORRUPT (its marker); KVT_ERR_LIMIT (open files, memory);
 * KVT_ERR_UNSUPPORTED (scheme);
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Owner: the caller. Threads: any. Blocks: file: while the index
 * is rebuilt. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_open(kvt_runtime_t runtime, const char* url, size_t url_len,
                                    kvt_cache_t* cache);

/* Refuses new operations, waits for those in flight, and flushes. The handle stays valid until destroy.
 * @return KVT_OK; KVT_ERR_TIMEOUT; KVT_ERR_IO; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE;
 * KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: up to timeout_ms. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_close(kvt_cache_t cache, int64_t timeout_ms);

/* Cancels what is in flight and ends the cache; when it returns the library touches no memory of the
 * caller's. 0 and stale ids are accepted. Threads: any but the runtime's. Blocks: as kvt_cache_cancel.
 * Since: 0.1. */
KVT_API void kvt_cache_destroy(kvt_cache_t cache);

/* Puts frames. All bytes are borrowed until the operation is done.
 * @param keys      count x KVT_KEY_BYTES. @param frames  one after another. @param lengths  count frame
 * lengths.
 * @param results   out, count statuses, written before completion; each item's own: KVT_OK; KVT_ERR_CORRUPT
 * (not a whole frame); KVT_ERR_MISMATCH (the frame carries another key); KVT_ERR_DISK_FULL; KVT_ERR_IO;
 * KVT_ERR_LIMIT (memory, capacity, open files); KVT_ERR_OUT_OF_MEMORY; KVT_ERR_VERSION (a frame of another
 * format version); KVT_ERR_CANCELLED; KVT_ERR_TIMEOUT. When the key is there already with a frame of the same
 * model, namespace, layers, heads, tokens, codec with parameters but dense's quantiser, and profile, that one
 * is kept: KVT_OK. Otherwise the new frame replaces it, as it does when a profile's frame has other bytes.
 * @param operation out.
 * @return KVT_OK: submitted; KVT_ERR_INVALID_ARGUMENT (also: more than 2^24 items, a key that is all zero);
 * KVT_ERR_CLOSED; KVT_ERR_LIMIT (65,536 operations run or wait to be taken); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_submit_put(kvt_cache_t cache, const uint8_t* keys, size_t count,
                                          const uint8_t* frames, const uint64_t* lengths,
                                          kvt_status_t* results, int64_t timeout_ms, uint64_t* operation);

/* Encodes blocks of a view and puts them: block i is tokens [spec->token_begin + i x block_tokens, ...) of
 * the view under key i. A block whose key is there already, with a frame that this store would give but for
 * its exempt tokens and dense's quantiser, or with more layers, is not encoded: KVT_OK. A frame of another
 * form (other layers or heads, another codec or profile) is replaced: a key has one frame, that of what was
 * stored last.
 * @param spec  layers, first token, exempt tokens (counted from the ends of the whole run of blocks) and
 * namespace digest; token count and key are set per block.
 * @param block_tokens  a multiple of KVT_GRAIN_TOKENS up to 65,536.
 * @return as kvt_cache_submit_put; KVT_ERR_OUT_OF_RANGE (blocks beyond the view); KVT_ERR_MISMATCH (the view
 * has layers or heads that the codec's model has not); KVT_ERR_UNAVAILABLE (device memory).
 * Statuses and borrowing as kvt_cache_submit_put; the view's memory is borrowed until completion. Threads:
 * any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_submit_store(kvt_cache_t cache, kvt_codec_t codec, const kvt_view_t* view,
                                            const kvt_frame_spec_t* spec, uint32_t block_tokens,
                                            const uint8_t* keys, size_t count, kvt_status_t* results,
                                            int64_t timeout_ms, uint64_t* operation);

/* Loads blocks into a view, checked and decoded, as kvt_cache_submit_store laid them out.
 * @param results  out, per block: KVT_OK (in place and checked); KVT_ERR_NOT_FOUND; KVT_ERR_CORRUPT;
 * KVT_ERR_MISMATCH; KVT_ERR_CANCELLED; ... Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_submit_load(kvt_cache_t cache, kvt_codec_t codec, const kvt_view_t* view,
                                           const kvt_frame_spec_t* spec, uint32_t block_tokens,
                                           const uint8_t* keys, size_t count, kvt_status_t* results,
                                           int64_t timeout_ms, uint64_t* operation);

/* Drains up to cap completions. @param count out. @return KVT_OK (count may be 0); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_poll(kvt_cache_t cache, kvt_completion_t* completions, size_t cap,
                                    size_t* count);

/* Waits for one operation and takes its completion (poll will not return it again).
 * @param completion out, may be NULL; written whenever the operation has ended, whatever its status.
 * @return the operation's status; KVT_ERR_TIMEOUT when it has not ended at this call's deadline (it goes on,
 * its memory stays lent, and `completion` is untouched); KVT_ERR_NOT_FOUND (no such operation, or its
 * completion was taken; `completion` is untouched). An operation may itself end with one of these two: set
 * completion.operation to 0 before the call, and it is the operation's id after it when the operation has
 * ended. KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks: up to
 * timeout_ms. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_wait(kvt_cache_t cache, uint64_t operation, int64_t timeout_ms,
                                    kvt_completion_t* completion);

/* Cancels an operation. When it returns, the library touches none of the operation's memory; its completion
 * carries KVT_ERR_CANCELLED, or its status if it had ended. As a deadline, it acts between blocks: a block
 * that a thread has in hand is encoded, decoded or written to its end first, and keeps its own status.
 * @return KVT_OK; KVT_ERR_NOT_FOUND; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any but the
 * runtime's. Blocks: for the blocks in hand, which is seconds for one of 65,536 tokens. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_cancel(kvt_cache_t cache, uint64_t operation);

/* A file descriptor that is readable while completions wait. Owner: the cache; do not read, write or close
 * it.
 * @return KVT_OK; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_event_fd(kvt_cache_t cache, int32_t* fd);

/* Length of the longest prefix of `keys` that is present (index only; a load still checks every byte).
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_CLOSED; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_match(kvt_cache_t cache, const uint8_t* keys, size_t count, size_t* matched);

/* Puts one frame in the calling thread: what kvt_cache_submit_put does for one, without waking a worker.
 * @param frame  frame_len bytes, borrowed for the call.
 * @return KVT_OK (also: the key has such a frame already); KVT_ERR_CORRUPT (not a whole frame);
 * KVT_ERR_MISMATCH (the frame carries another key); KVT_ERR_VERSION; KVT_ERR_DISK_FULL; KVT_ERR_IO;
 * KVT_ERR_LIMIT (memory, capacity, open files); KVT_ERR_OUT_OF_MEMORY; KVT_ERR_INVALID_ARGUMENT (`frame` is
 * NULL; frame_len is 0 or above KVT_FRAME_BYTES_MAX; a key that is all zero); KVT_ERR_CLOSED;
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. After an error the frame is not stored, though others may have
 * been evicted to make room for it. Threads: any. Blocks: file: for the disk. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_put(kvt_cache_t cache, const uint8_t key[KVT_KEY_BYTES], const uint8_t* frame,
                                   size_t frame_len);

/* Copies one frame out, checked whole.
 * @return KVT_OK; KVT_ERR_NOT_FOUND; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_CORRUPT (the frame was dropped);
 * KVT_ERR_VERSION (a frame of another format version, dropped too); KVT_ERR_IO; KVT_ERR_LIMIT (memory, for
 * file:); KVT_ERR_OUT_OF_MEMORY; KVT_ERR_CLOSED; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: file: for the disk. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_get(kvt_cache_t cache, const uint8_t key[KVT_KEY_BYTES], uint8_t* buf,
                                   size_t cap, size_t* needed);

/* Removes frames; keys that are absent are skipped. @param removed out, may be NULL.
 * @return KVT_OK; KVT_ERR_IO, KVT_ERR_DISK_FULL, KVT_ERR_LIMIT (open files): the frames are gone from this
 * handle, but may be back when the directory is opened again; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_CLOSED;
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: file: for the disk. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_remove(kvt_cache_t cache, const uint8_t* keys, size_t count, size_t* removed);

typedef struct kvt_cache_stats_s {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t frames;         /* visible */
  uint64_t bytes;          /* of visible frames */
  uint64_t capacity_bytes; /* 0: none */
  uint64_t puts, hits, misses, evictions, removals;
  uint64_t corrupt;   /* frames that failed a check and were dropped */
  uint64_t torn;      /* records dropped when the index was rebuilt */
  uint64_t checksums; /* verified */
} kvt_cache_stats_t;

/* @param stats out; struct_size set by the caller. @return KVT_OK; KVT_ERR_INVALID_ARGUMENT;
 * KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_cache_stats(kvt_cache_t cache, kvt_cache_stats_t* stats);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_CACHE_H_ */
