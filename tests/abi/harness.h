/* A test program in plain C: CHECK counts a failure and goes on; RUN prints one line a test; main returns
 * Finish(). */
#ifndef KVARTET_TESTS_ABI_HARNESS_H_
#define KVARTET_TESTS_ABI_HARNESS_H_

#include <stdio.h>
#include <string.h>

#include "kvartet/kvartet.h"

static int harness_failures_;
static int harness_failed_tests_;
static int harness_tests_;

/* The text of the calling thread's last failure, with a NUL; overwritten by the next call. */
static inline const char* LastText(void) {
  static char text[KVT_ERROR_TEXT_MAX + 1];
  size_t needed = 0;
  if (kvt_last_error(text, KVT_ERROR_TEXT_MAX, &needed) != KVT_OK) needed = 0;
  text[needed] = 0;
  return text;
}

static inline void Fail(const char* file, int line, const char* what) {
  ++harness_failures_;
  printf("  %s:%d: %s\n", file, line, what);
}

#define CHECK(condition)                                       \
  do {                                                         \
    if (!(condition)) Fail(__FILE__, __LINE__, "" #condition); \
  } while (0)

static inline void CheckStatus(const char* file, int line, const char* what, kvt_status_t got,
                               kvt_status_t want) {
  if (got == want) return;
  ++harness_failures_;
  printf("  %s:%d: %s gave %s, wanted %s; text: %s\n", file, line, what, kvt_status_name(got),
         kvt_status_name(want), LastText());
}

#define CHECK_STATUS(call, want) CheckStatus(__FILE__, __LINE__, #call, (call), (want))
#define CHECK_OK(call) CHECK_STATUS(call, KVT_OK)

/* The text of the last failure holds `part`. */
#define CHECK_TEXT(part)                                                                \
  do {                                                                                  \
    if (strstr(LastText(), (part)) == NULL) {                                           \
      ++harness_failures_;                                                              \
      printf("  %s:%d: text lacks '%s': %s\n", __FILE__, __LINE__, (part), LastText()); \
    }                                                                                   \
  } while (0)

static inline void RunTest(const char* name, void (*test)(void)) {
  const int before = harness_failures_;
  test();
  ++harness_tests_;
  if (harness_failures_ != before) ++harness_failed_tests_;
  printf("%s %s\n", harness_failures_ == before ? "ok" : "FAILED", name);
  fflush(stdout);
}

#define RUN(test) RunTest(#test, test)

static inline int Finish(void) {
  printf("%d passed, %d failed\n", harness_tests_ - harness_failed_tests_, harness_failed_tests_);
  return harness_failed_tests_ == 0 ? 0 : 1;
}

#endif /* KVARTET_TESTS_ABI_HARNESS_H_ */
