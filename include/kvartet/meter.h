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

/* Parts of TTFT. Exposed times: what another part hides is not counted, so parts add up to the total. */
enum {
  KVT_PART_QUEUE = 1,
  KVT_PART_PREFILL = 2,
  KVT_PART_ENCODE = 3,
  KVT_PART_TRANSFER = 4,
  KVT_PART_DECODE = 5 /* of the codec */,
  KVT_PART_FIRST_TOKEN = 6,
  KVT_PART_OTHER = 7
};

/* Counters of a request or of the meter. */
enum {
  KVT_COUNTER_BYTES_RAW = 1 /* KV at the model's element type */,
  KVT_COUNTER_BYTES_MOVED = 2 /* whole frames and framing */,
  KVT_COUNTER_CHECKSUMS = 3,
  KVT_COUNTER_BLOCKS_HIT = 4,
  KVT_COUNTER_BLOCKS_MISSED = 5,
  KVT_COUNTER_TOKENS_PROMPT = 6,
  KVT_COUNTER_TOKENS_OUTPUT = 7,
  KVT_COUNTER_TOKENS_DRAFTED = 8,
  KVT_COUNTER_TOKENS_ACCEPTED = 9,
  KVT_COUNTER_NONFINITE = 10
};

/* Creates a meter. @return KVT_OK; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE; KVT_ERR_INVALID_ARGUMENT.
 * Owner: the caller. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_meter_create(kvt_runtime_t runtime, kvt_meter_t* meter);
KVT_API void kvt_meter_destroy(kvt_meter_t meter);

/* Begins a request; its clock starts. @param way  a label such as "raw", up to 64 bytes: requests are grouped
 * by it. @param request out. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_begin(kvt_meter_t meter, const char* way, size_t way_len, uint64_t* request);

/* Marks that from now on the request's time belongs to `part`: the part before it is closed. Parts may come
 * again; their times add up. Threads: any, one request one thread at a time. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_part(kvt_meter_t meter, uint64_t request, int32_t part);

/* Moves time between parts after the fact, for work that another process measured: takes `nanoseconds` out of
 * `from` into `to`.
 * @return KVT_ERR_OUT_OF_RANGE when `from` has less. Threads: as kvt_request_part. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_attribute(kvt_meter_t meter, uint64_t request, int32_t from, int32_t to,
                                           uint64_t nanoseconds);

/* Marks the first token: closes the running part; the parts now add up to TTFT. Then, or at any time,
 * counters may be added. Threads: as kvt_request_part. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_first_token(kvt_meter_t meter, uint64_t request);
KVT_API kvt_status_t kvt_request_count(kvt_meter_t meter, uint64_t request, int32_t counter, uint64_t amount);

/* Ends a request and folds it into the meter. Threads: as kvt_request_part. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_request_end(kvt_meter_t meter, uint64_t request);

/* Copies the meter as JSON:
 * {"schema":1,"ways":[{"way":"raw","requests":n,"ttft_ms":{"queue":..,"prefill":..,"encode":..,"transfer":..,"decode":..,
 * "first_token":..,"other":..,"total":..},"counters":{..}}]} with mean times. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API kvt_status_t kvt_meter_json(kvt_meter_t meter, char* buf, size_t cap, size_t* needed);

/* One sentence: which axis (location, size, ownership, verification, or none) to touch first and why, from
 * queue and transfer share of TTFT first. Says so when there is too little data. Threads: any. Blocks: no.
 * Since: 0.1. */
KVT_API kvt_status_t kvt_meter_advice(kvt_meter_t meter, char* buf, size_t cap, size_t* needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_METER_H_ */
