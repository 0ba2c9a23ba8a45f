/* What the tests of the flat facade share: a small model, a view of it, and checks of results. */
#ifndef KVARTET_TESTS_BINDINGS_FLAT_KIT_H_
#define KVARTET_TESTS_BINDINGS_FLAT_KIT_H_

#include <stdlib.h>

#include "abi/harness.h"
#include "kvartet_flat.h"

enum {
  LAYERS = 2,
  HEADS = 2,
  DIM = 32,
  TOKENS = 64,
  BLOCK = 16,
  BLOCKS = TOKENS / BLOCK,
  BASES = LAYERS * 2,
  ROW_BYTES = HEADS * DIM * 2,
  PLANE_BYTES = TOKENS * ROW_BYTES,
  VIEW_BYTES = BASES * PLANE_BYTES,
  WAIT_MS = 20000
};

/* The text of the last call that was given TEXT. */
extern uint8_t text[256];
#define TEXT text, sizeof text
#define NONE NULL, 0

/* A result of at least 0, which is returned; else a failure of the test. */
static inline int64_t Good(const char* file, int line, const char* what, int64_t result) {
  if (result >= 0) return result;
  ++harness_failures_;
  printf("  %s:%d: %s gave %lld; text: %s\n", file, line, what, (long long)result, (const char*)text);
  return result;
}
#define GOOD(call) Good(__FILE__, __LINE__, #call, (call))

/* A call with TEXT that is refused with a status and a word of its text. */
static inline void Refused(const char* file, int line, const char* what, int64_t got, int64_t status,
                           const char* word) {
  if (got == status && strstr((const char*)text, word) != NULL) return;
  ++harness_failures_;
  printf("  %s:%d: %s gave %lld, wanted %lld with '%s'; text: %s\n", file, line, what, (long long)got,
         (long long)status, word, (const char*)text);
}
#define REFUSED(status, word, call) \
  Refused(__FILE__, __LINE__, #call, (text[0] = 0, (call)), KVTF_##status, word)

/* A view in arguments: words, offsets of the bases, and its memory, which is of the very size. */
typedef struct view {
  int64_t record[KVTF_VIEW_WORDS];
  int64_t bases[BASES];
  uint8_t* memory;
} view_t;

/* Rows that depend on `seed`: finite f16 that vary in few directions. 0: zeroes. */
void ViewInit(view_t* view, int seed);
void ViewEnd(view_t* view);
#define VIEW_OF(v)                                                                                       \
  (const uint8_t*)(v)->record, sizeof(v)->record, (const uint8_t*)(v)->bases, sizeof(v)->bases, NULL, 0, \
      (v)->memory, VIEW_BYTES

/* Failures of these are counted by nobody, so they end the program. */
int64_t NewModel(const char* id);
void SpecInit(int64_t spec[KVTF_SPEC_WORDS], int64_t begin, int64_t count);
#define BYTES_OF(array) (const uint8_t*)(array), sizeof(array)

/* The keys of all blocks, and the raw frame of block `i`, which the caller frees. */
void MakeKeys(int64_t model, uint8_t keys[BLOCKS][KVTF_KEY_BYTES]);
uint8_t* MakeFrame(int64_t model, const uint8_t* key, int block, uint64_t* length);

#endif /* KVARTET_TESTS_BINDINGS_FLAT_KIT_H_ */
