// What a session saw inside its model while it computed: queries of every n-th token, and the size of the
// residual stream ahead of each layer. Threads: as for any value type.
#ifndef KVARTET_TOOLS_ENGINE_CAPTURED_H_
#define KVARTET_TOOLS_ENGINE_CAPTURED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvt::engine {

struct Captured {
  size_t layers = 0;
  size_t heads = 0;  // of queries
  size_t dim = 0;
  std::vector<int32_t> positions;  // of the rows, ascending
  std::vector<float> queries;      // layers x heads x rows x dim, rotated as the keys are
  std::vector<float> residual;     // layers x rows: mean square of the vector that the layer reads

  size_t rows() const { return positions.size(); }
  const float* Query(size_t layer, size_t head, size_t row) const {
    return queries.data() + ((layer * heads + head) * rows() + row) * dim;
  }
  float Residual(size_t layer, size_t row) const { return residual[layer * rows() + row]; }
};

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_CAPTURED_H_
