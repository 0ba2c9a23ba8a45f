// The rotations of a run of positions, computed once (angles in double) and used by all layers and heads.
//
// Immutable after Create, so thread-safe.
#ifndef KVARTET_LIB_CODEC_TRANSFORM_TURN_TABLE_H_
#define KVARTET_LIB_CODEC_TRANSFORM_TURN_TABLE_H_

#include <vector>

#include "cpu/transform_rows.h"
#include "model/model.h"

namespace kvt {

class TurnTable {
 public:
  // Of positions [first, first + count); back when `undo`, else forth.
  TurnTable(const Rope& rope, uint64_t first, uint64_t count, bool undo);

  // For tokens from `token` on; nothing for a stream that is not rotated.
  kernels::Turns From(uint32_t stream, uint64_t token) const;

 private:
  kernels::Turns shape_;
  std::vector<float> cosines_, sines_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_TRANSFORM_TURN_TABLE_H_
