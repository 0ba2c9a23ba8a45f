/* The planner: decides what pays. Today: which codec a transfer takes.
 *
 * A codec is worth its time while the link is slow. The planner predicts the time of each rung from its rates
 * and the bandwidth, corrects the prediction by the times that the host reports, and takes the fastest rung
 * whose quality is good enough, or none. */
#ifndef KVARTET_PLANNER_H_
#define KVARTET_PLANNER_H_

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t kvt_planner_t;

/* In kvt_codec_choice_t.rung: rows are sent as they are. */
#define KVT_RUNG_NONE UINT32_MAX

/* A codec with its parameters, as measured on both hosts with the threads that they give it. Rates are bytes
 * of rows a second, and so are not divided by the ratio. */
typedef struct kvt_codec_rung {
  double encode_rate;     /* bytes a second, > 0 */
  double decode_rate;     /* bytes a second, > 0 */
  double ratio;           /* bytes of rows over bytes of frames, > 0 */
  uint32_t quality_class; /* of the host's own scale: 0 exact, more is worse */
  uint32_t reserved;      /* 0 */
} kvt_codec_rung_t;

typedef struct kvt_planner_options {
  uint32_t struct_size;
  uint32_t rung_count;           /* 1 to 256 */
  const kvt_codec_rung_t* rungs; /* copied */
  uint64_t seed;                 /* of the draws that try rungs out; default 0 */
} kvt_planner_options_t;

/* A transfer to be planned. */
typedef struct kvt_codec_request {
  uint32_t struct_size;
  uint32_t segments; /* parts that are encoded, sent and decoded one after another, each while others are in
                        the other stages; 1, the default: nothing overlaps */
  uint64_t bytes;    /* of rows, 1 to 2^50 */
  double bandwidth;  /* of the link, bytes a second, > 0 */
  uint32_t quality_max; /* worst quality class that is good enough; default UINT32_MAX: any */
  uint32_t reserved;    /* 0 */
} kvt_codec_request_t;

/* What was chosen; handed back to kvt_planner_observe. */
typedef struct kvt_codec_choice {
  uint32_t struct_size;
  uint32_t rung;  /* index into the options' rungs, or KVT_RUNG_NONE */
  double seconds; /* predicted with what was observed so far */
  double model;   /* predicted from rates, ratio and bandwidth alone */
  uint64_t bytes; /* of the request, as are the following */
  double bandwidth;
  uint32_t segments;
  uint32_t reserved; /* 0 */
} kvt_codec_choice_t;

/* Fill defaults. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_planner_options_init(kvt_planner_options_t* options, size_t struct_size);
KVT_API void kvt_codec_request_init(kvt_codec_request_t* request, size_t struct_size);

/* Creates a planner.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT (the field and value are named); KVT_ERR_OUT_OF_MEMORY. Owner: the
 * caller. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_planner_create(const kvt_planner_options_t* options, kvt_planner_t* planner);

/* Ends a planner; 0 and stale ids are accepted. Threads: any. Blocks: no. Since: 0.1. */
KVT_API void kvt_planner_destroy(kvt_planner_t planner);

/* Picks the rung of one transfer. With S stage times (encode, send, decode) and n segments the model is
 * (sum of S + (n - 1) x the longest of S) / n; with n = 1 a rung is faster than none while
 *   1 / encode_rate + 1 / decode_rate < (1 - 1 / ratio) / bandwidth,
 * with many segments while both rates are above the bandwidth. What was observed corrects, for each rung, the
 * codec's share, the link's share and a constant; none has copies in place of a codec, which cost nothing
 * until it shows. A rung of which little is known is tried now and then; which one follows from the seed and
 * from what was asked and reported before.
 * @param choice  out; struct_size set by the caller.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_planner_pick_codec(kvt_planner_t planner, const kvt_codec_request_t* request,
                                            kvt_codec_choice_t* choice);

/* Reports how long a choice took from the first byte encoded to the last decoded. Choices may be reported in
 * any order, or not at all (a transfer that failed says nothing of its rung).
 * @param seconds  > 0.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_STALE_HANDLE; KVT_ERR_WRONG_HANDLE. Threads: any. Blocks:
 * no. Since: 0.1. */
KVT_API kvt_status_t kvt_planner_observe(kvt_planner_t planner, const kvt_codec_choice_t* choice,
                                         double seconds);

/* The bandwidth from which on none is faster than a rung, with what was observed so far.
 * @param segments, bytes  as in kvt_codec_request_t.
 * @param bandwidth        out: bytes a second; 0 when the rung never pays, infinity when it always does,
 * between 1 and 1e15 bytes a second.
 * @return KVT_OK; KVT_ERR_INVALID_ARGUMENT; KVT_ERR_OUT_OF_RANGE (no such rung); KVT_ERR_STALE_HANDLE;
 * KVT_ERR_WRONG_HANDLE. Threads: any. Blocks: no. Since: 0.1. */
KVT_API kvt_status_t kvt_planner_crossover(kvt_planner_t planner, uint32_t rung, uint32_t segments,
                                           uint64_t bytes, double* bandwidth);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KVARTET_PLANNER_H_ */
