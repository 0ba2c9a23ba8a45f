/* The meter: where the time to first token goes, counters, and a line of advice on which axis to touch first.
 */
#ifndef KVARTET_METER_H_
#define KVARTET_METER_H_

#include "base.h"
#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_meter_t;

/* Parts of TTFT (time to first token). Exposed times: what another part hides is not counted, so parts add up
 * to the total. */
enum {
  KVT_PART_QUEUE = 1,
  KVT_PART_PREFILL = 2,
  KVT_PART_ENCODE = 3,
  KVT_PART_TRANSFER = 4,
  KVT_PART_DECODE = 5, /* of the codec */
  KVT_PART_FIRST_TOKEN = 6,
  KVT_PART_OTHER = 7 /* also what comes before the first mark */
};

/* Counters of a request or of the meter. */
enum {
  KVT_COUNTER_BYTES_RAW = 1,   /* KV at the model's element type */
  KVT_COUNTER_BYTES_MOVED = 2, /* whole frames and framing */
  KVT_COUNTER_CHECKSUMS = 3,
  KVT_COUNTER_BLOCKS_HIT = 4,
  KVT_COUNTER_BLOCKS_MISSED = 5,
  KVT_COUNTER_TOKENS_PROMPT = 6,
  KVT_COUNTER_TOKENS_OUTPUT = 7,
  KVT_COUNTER_TOKENS_DRAFTED = 8,
  KVT_COUNTER_TOKENS_ACCEPTED = 9,
  KVT_COUNTER_NONFINITE = 10
};

/* Creates a meter.
 * @param runtime  kept alive by the meter.
 * @param meter    out.
 * @return KVT_OK; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT (meter is NULL);
 * KVT_ERR_OUT_OF_MEMORY.
 * Owner: the caller, who ends it with kvt_meter_destroy. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_meter_create(kvt_runtime_t runtime, kvt_meter_t* meter);

/* Destroys a meter with all that it has summed; 0 and stale ids are accepted. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API void kvt_meter_destroy(kvt_meter_t meter);

/* Begins a request; its clock starts.
 * @param way, way_len  a UTF-8 label of 1 to 64 bytes, such as "raw"; requests are grouped by it. The advice
 *                      knows "recompute", "raw", "lossy", "lossy_verified" and "cache_hit", and judges others
 *                      by their counters.
 * @param request       out: never 0, of this meter only.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (the label, or request is NULL); KVT_ERR_LIMIT (256 labels, or
 * 1,048,576 open requests); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_OUT_OF_MEMORY.
 * Owner: the meter, until kvt_request_end. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_begin(kvt_meter_t meter, const char* way, size_t way_len, uint64_t* request);

/* Marks that from now on the request's time belongs to `part`: the part before it is closed. Parts may come
 * again; their times add up.
 * @param part  KVT_PART_*.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (no such part, or the first token is marked); KVT_ERR_NOT_FOUND
 * (no such open request); KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any, one request one thread at
 * a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_part(kvt_meter_t meter, uint64_t request, int32_t part);

/* Moves time between parts after the fact, for work that another process measured. The total stays.
 * @param from, to     KVT_PART_*; of a part that still runs, what it has so far.
 * @param nanoseconds  taken out of `from` into `to`.
 * @return KVT_OK; KVT_ERR_OUT_OF_RANGE (`from` has less; nothing moved); KVT_ERR_INVALID_ARGUMENT (no such
 * part); KVT_ERR_NOT_FOUND; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any, one request one thread at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_attribute(kvt_meter_t meter, uint64_t request, int32_t from, int32_t to,
                                           uint64_t nanoseconds);

/* Marks the first token: closes the running part; the parts now add up to TTFT.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (marked before); KVT_ERR_NOT_FOUND; KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE.
 * Threads: any, one request one thread at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_first_token(kvt_meter_t meter, uint64_t request);

/* Adds to a counter; one that is full stays full.
 * @param request  an open request; 0 counts for the meter itself.
 * @param counter  KVT_COUNTER_*.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (no such counter); KVT_ERR_NOT_FOUND; KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_count(kvt_meter_t meter, uint64_t request, int32_t counter, uint64_t amount);

/* Ends a request and folds it into its way. One without a first token adds its counters, not its times.
 * @return KVT_OK; KVT_ERR_NOT_FOUND; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE.
 * Threads: any, one request one thread at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_end(kvt_meter_t meter, uint64_t request);

/* Copies the meter as JSON, without a NUL:
 * {"schema":1,"ways":[{"way":"raw","requests":n,"unfinished":n,"ttft_ms":{"queue":..,"prefill":..,"encode":..,
 * "transfer":..,"decode":..,"first_token":..,"other":..,"total":..},"ttft_percentiles_ms":{"queue":{"p50":..,
 * "p90":..,"p99":..},..,"total":{..}},"duration_ms":..,"duration_percentiles_ms":{..},"counters":{"bytes_raw":
 * ..,..}}],"counters":{..},"operations":{"put":{"ended":n,"failed":n,"ms":{"p50":..,"p90":..,"p99":..}},
 * "store":{..},"load":{..},"pull":{..},"push":{..},"pull_stream":{..}}}. Times are means over requests with a
 * first token, duration from begin to end; a way's counters are sums over its ended requests; the counters
 * after them are the meter's own. Percentiles are within 6.25 %, and 0 below a microsecond. Operations are
 * those of all caches and nodes of the meter's runtime since it was created, from submit to completion;
 * "failed" counts those whose status was not KVT_OK, whose times count too.
 * @param buf, cap  where to; (NULL, 0) probes.
 * @param needed    out, may be NULL if buf is not.
 * @return KVT_OK; KVT_ERR_BUFFER_TOO_SMALL; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_meter_json(kvt_meter_t meter, char* buf, size_t cap, size_t* needed);

/* Copies one sentence, without a NUL: which axis (location, size, ownership, verification, or none) to touch
 * first and why, from the shares of queue, transfer and prefill in TTFT in this order, and whether raw or
 * lossy is faster on this link when both were measured. Says so when there is too little data.
 * @param buf, cap, needed  as kvt_meter_json.
 * @return as kvt_meter_json.
 * Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_meter_advice(kvt_meter_t meter, char* buf, size_t cap, size_t* needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_METER_H_ */
