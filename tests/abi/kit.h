/* One live object of every handle type, over a small model, for tests that need them all. */
#ifndef KVARTET_TESTS_ABI_KIT_H_
#define KVARTET_TESTS_ABI_KIT_H_

#include "harness.h"

enum {
  KIT_LAYERS = 2,
  KIT_HEADS = 2,
  KIT_DIM = 16,
  KIT_TOKENS = 64,
  KIT_BLOCK = 16,
  KIT_BLOCKS = KIT_TOKENS / KIT_BLOCK,
  KIT_ROW_BYTES = KIT_HEADS * KIT_DIM * 2,
  KIT_PLANE_BYTES = KIT_TOKENS * KIT_ROW_BYTES,
  KIT_FRAME_CAP = 64 * 1024,
  KIT_WAIT_MS = 20000
};

/* KV of KIT_TOKENS tokens and the view that describes it. Not to be moved: the view points into it. */
typedef struct rows {
  uint8_t data[KIT_LAYERS * 2][KIT_PLANE_BYTES];
  void* bases[KIT_LAYERS * 2];
  kvt_view_t view;
} rows_t;

/* Fills `rows` with finite f16 values that depend on `seed`, or with zeros when seed is 0. */
void RowsInit(rows_t* rows, uint32_t seed);

typedef struct kit {
  kvt_runtime_t runtime;
  kvt_model_t model;
  kvt_codec_t codec; /* raw */
  kvt_cache_t cache; /* mem:, holds all blocks of `rows` */
  kvt_node_t node;   /* listens on loopback, serves `cache` */
  kvt_node_t client;
  kvt_peer_t peer; /* of `client`, connected to `node` */
  kvt_stream_t stream;
  kvt_verifier_t verifier;
  kvt_meter_t meter;
  uint64_t request;
  int32_t tokens[KIT_TOKENS];
  uint8_t keys[KIT_BLOCKS * KVT_KEY_BYTES];
  uint8_t digest[KVT_NAMESPACE_DIGEST_BYTES];
  uint8_t frame[KIT_FRAME_CAP]; /* of block 0 */
  size_t frame_len;
  uint64_t frame_len_u64;
  kvt_frame_spec_t spec; /* of block 0 */
  rows_t rows;
} kit_t;

/* Options that are right, to be spoiled by tests. */
kvt_model_options_t KitModelOptions(void);
kvt_verifier_options_t KitVerifierOptions(void);

/* The part that needs no thread and no socket: model, codec, keys, rows, one frame. */
void KitOpenCore(kit_t* kit);
/* Core, and runtime and filled cache. */
void KitOpenCache(kit_t* kit);
/* Everything. */
void KitOpen(kit_t* kit);
/* Destroys what is there; a kit opened in part is fine. */
void KitClose(kit_t* kit);

#endif /* KVARTET_TESTS_ABI_KIT_H_ */
