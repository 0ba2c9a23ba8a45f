/* Kvartet: the embeddable library for the KV cache of LLM serving. This header includes every stable one. */
#ifndef KVARTET_KVARTET_H_
#define KVARTET_KVARTET_H_

#include "base.h"
#include "cache.h"
#include "codec.h"
#include "key.h"
#include "meter.h"
#include "model.h"
#include "planner.h"
#include "runtime.h"
#include "select.h"
#include "transfer.h"
#include "verifier.h"

#endif /* KVARTET_KVARTET_H_ */
