/* REFUSED: a call that must fail with a status, name a field in its text, and leave the out-parameters alone.
 */
#ifndef KVARTET_TESTS_ABI_REFUSED_H_
#define KVARTET_TESTS_ABI_REFUSED_H_

#include "outs.h"

static kit_t kit;
static outs_t o;

#define REFUSED(want, text, call)                                                      \
  do {                                                                                 \
    OutsInit(&o);                                                                      \
    CHECK_STATUS(call, want);                                                          \
    CHECK_TEXT(text);                                                                  \
    if (!OutsUntouched(&o)) Fail(__FILE__, __LINE__, "out-parameter touched: " #call); \
  } while (0)

#define INVALID(text, call) REFUSED(KVT_ERR_INVALID_ARGUMENT, text, call)

#endif /* KVARTET_TESTS_ABI_REFUSED_H_ */
