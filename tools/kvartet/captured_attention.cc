#include "kvartet/captured_attention.h"

#include <algorithm>

namespace kvt::cli {

CapturedAttention::CapturedAttention(const engine::Captured& captured, size_t first, size_t count,
                                     const std::vector<int32_t>& positions) {
  for (size_t row = first; row < first + count; ++row) {
    const auto at = std::lower_bound(positions.begin(), positions.end(), captured.positions[row]);
    tokens_.push_back(static_cast<uint32_t>(at - positions.begin()));
  }
  const auto row_bytes = static_cast<int64_t>(captured.dim * sizeof(float));
  kvt_attention_init(&attention_, sizeof attention_);
  attention_.kind = KVT_ATTENTION_QUERIES;
  attention_.layer_end = static_cast<uint32_t>(captured.layers);
  attention_.heads = static_cast<uint32_t>(captured.heads);
  attention_.rows = static_cast<uint32_t>(count);
  attention_.base = captured.queries.data() + first * captured.dim;
  attention_.row_stride = row_bytes;
  attention_.head_stride = row_bytes * static_cast<int64_t>(captured.rows());
  attention_.layer_stride = attention_.head_stride * static_cast<int64_t>(captured.heads);
  attention_.row_tokens = tokens_.data();
}

}  // namespace kvt::cli
