// RoPE undo and redo in place over a view. Stateless; two threads must not turn the same rows.
#ifndef KVARTET_LIB_MODEL_ROPE_H_
#define KVARTET_LIB_MODEL_ROPE_H_

#include "model/model.h"
#include "model/view.h"

namespace kvt {

// Turns the rotated part of stream 0 of tokens [begin, begin + count), all layers and heads of the view, by
// the angle of their positions: back when `undo`, else forth. Computes in double and rounds once; a model
// without RoPE has nothing to turn. KVT_ERR_OUT_OF_RANGE; KVT_ERR_UNSUPPORTED for fp8 rows.
Status TurnRope(const Model& model, const View& view, uint64_t begin, uint64_t count, bool undo);

}  // namespace kvt

#endif  // KVARTET_LIB_MODEL_ROPE_H_
