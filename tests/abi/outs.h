/* Out-parameters filled with a pattern, so that a test sees whether a failed call wrote to one. */
#ifndef KVARTET_TESTS_ABI_OUTS_H_
#define KVARTET_TESTS_ABI_OUTS_H_

#include "kit.h"

typedef struct outs {
  uint8_t bytes[4096];
  char text[512];
  uint64_t handle, operation, number, lengths[KIT_BLOCKS], offsets[KIT_BLOCKS];
  size_t size;
  int32_t fd, level;
  float margin;
  kvt_status_t results[KIT_BLOCKS];
  kvt_completion_t completion;
  kvt_shard_t shard;
  kvt_codec_report_t report;
  kvt_cache_stats_t cache_stats;
  kvt_node_stats_t node_stats;
  kvt_verifier_stats_t verifier_stats;
  kvt_action_t action;
} outs_t;

static inline void OutsInit(outs_t* outs) {
  memset(outs, 0xA5, sizeof *outs);
  outs->report.struct_size = sizeof outs->report;
  outs->cache_stats.struct_size = sizeof outs->cache_stats;
  outs->node_stats.struct_size = sizeof outs->node_stats;
  outs->verifier_stats.struct_size = sizeof outs->verifier_stats;
  outs->action.struct_size = sizeof outs->action;
}

static inline int OutsUntouched(const outs_t* outs) {
  static outs_t fresh;
  OutsInit(&fresh);
  return memcmp(outs, &fresh, sizeof fresh) == 0;
}

#endif /* KVARTET_TESTS_ABI_OUTS_H_ */
