#include "codec/transform/group_rows.h"

#include <algorithm>

#include "codec/transform/blas.h"

namespace kvt {

using kernels::Element;

void GroupRows::Apply(const std::vector<float>& matrices, size_t layer, const SegmentShape& shape,
                      size_t count, size_t stride, float* tile) {
  if (matrices.empty()) return;
  const size_t dim = shape.dim;
  head_.resize(count * dim);
  for (size_t head = 0; head < shape.heads; ++head, tile += dim) {
    const float* matrix = matrices.data() + (layer * shape.heads + head) * dim * dim;
    blas::Multiply(count, dim, dim, {tile, stride}, {matrix, dim, /*transposed=*/true}, head_.data(), dim);
    for (size_t t = 0; t < count; ++t) std::copy_n(head_.data() + t * dim, dim, tile + t * stride);
  }
}

void GroupRows::Load(const ProfileGroup& group, const SegmentShape& shape, uint64_t token, size_t count,
                     float* tile, uint64_t* nonfinite) {
  const size_t stride = group.width();
  for (uint32_t layer = group.layer_begin; layer < group.layer_end; ++layer) {
    const size_t inside = layer - group.layer_begin, column = inside * shape.channels();
    rows_.Select(layer, shape.stream, token_begin_);
    const kernels::RowTile rows{Element{rows_.element()},  count, shape.heads, shape.dim, stride,
                                group.mean.data() + column};
    kernels::LoadRows(rows, turns_.From(shape.stream, token), rows_.Read(shape.exempt_first + token, count),
                      group.amplitude[inside], tile + column, nonfinite);
    Apply(group.forward, inside, shape, count, stride, tile + column);
  }
}

void GroupRows::Store(const ProfileGroup& group, const SegmentShape& shape, uint64_t token, size_t count,
                      uint32_t layer_begin, uint32_t layer_end, float* tile) {
  const size_t stride = (layer_end - layer_begin) * shape.channels();
  for (uint32_t layer = layer_begin; layer < layer_end; ++layer, tile += shape.channels()) {
    const size_t inside = layer - group.layer_begin;
    Apply(group.backward, inside, shape, count, stride, tile);
    rows_.Select(layer, shape.stream, token_begin_);
    const kernels::RowTile rows{Element{rows_.element()},
                                count,
                                shape.heads,
                                shape.dim,
                                stride,
                                group.mean.data() + inside * shape.channels()};
    kernels::StoreRows(rows, turns_.From(shape.stream, token), tile, 1 / group.amplitude[inside],
                       rows_.Write(shape.exempt_first + token, count));
    rows_.Commit();
  }
}

}  // namespace kvt
