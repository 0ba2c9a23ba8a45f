#include "kvartet/quality_importance.h"

#include <algorithm>

#include "kvartet/captured_attention.h"

namespace kvt::cli {

engine::Captured JoinCaptured(const engine::Captured& first, int32_t end, const engine::Captured& then) {
  const auto kept = static_cast<size_t>(
      std::lower_bound(first.positions.begin(), first.positions.end(), end) - first.positions.begin());
  const engine::Captured& shape = kept != 0 ? first : then;
  engine::Captured joined;
  joined.layers = shape.layers;
  joined.heads = shape.heads;
  joined.dim = shape.dim;
  const auto append = [](auto* to, const auto& from, size_t begin, size_t count) {
    to->insert(to->end(), from.begin() + static_cast<ptrdiff_t>(begin),
               from.begin() + static_cast<ptrdiff_t>(begin + count));
  };
  append(&joined.positions, first.positions, 0, kept);
  append(&joined.positions, then.positions, 0, then.rows());
  for (size_t i = 0; i < joined.layers * joined.heads; ++i) {
    append(&joined.queries, first.queries, i * first.rows() * joined.dim, kept * joined.dim);
    append(&joined.queries, then.queries, i * then.rows() * joined.dim, then.rows() * joined.dim);
  }
  for (size_t layer = 0; layer < joined.layers; ++layer) {
    append(&joined.residual, first.residual, layer * first.rows(), kept);
    append(&joined.residual, then.residual, layer * then.rows(), then.rows());
  }
  return joined;
}

std::vector<int8_t> ImportanceOf(const Model& model, const engine::KvBlob& blob,
                                 const engine::Captured& captured) {
  const CapturedAttention attention(captured, 0, captured.rows(), blob.positions());
  const BlobView view(blob);
  std::vector<int8_t> importance(static_cast<size_t>(blob.tokens()));
  size_t needed = 0;
  Check(kvt_token_importance(model.get(), view.get(), attention.get(), nullptr, importance.data(),
                             importance.size(), &needed),
        "kvt_token_importance");
  return importance;
}

}  // namespace kvt::cli
