// The metric of calibration: what an error of a head's key or value costs, as a symmetric matrix M of the
// head: an error e costs e^T M e.
//
// Of K, with RoPE undone: the mean of q q^T over the queries of the head's group, seen from the key at
// positions before them and divided by the head's elements, times the energy of the head's values after the
// output projection, a query head's mean. Of V: the sum of Wo^T Wo over the query heads that read it. Both
// divided by the mean square of the residual stream that the layer reads, which is what an error is added to.
// Documents enter in one order, so that the sums are the same after Save and Restore. Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_METRIC_H_
#define KVARTET_TOOLS_KVARTET_METRIC_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "kvartet/key_frame.h"
#include "kvartet/library.h"

namespace kvt::cli {

// Matrices by stream (K, V), layer and KV head. None: errors count as they are.
struct HeadMatrices {
  size_t heads = 0;
  std::array<std::vector<std::vector<float>>, 2> streams;

  std::span<const float> At(size_t stream, size_t layer, size_t head) const {
    if (streams[stream].empty()) return {};
    return streams[stream][layer * heads + head];
  }
};

// Tells a calibration of them.
void SetMetric(const Calibration& calibration, const HeadMatrices& matrices);

class Metric {
 public:
  // First positions are sinks: they attract attention whatever they hold, and do not enter.
  static constexpr int32_t kSinks = 4;

  explicit Metric(const engine::Geometry& geometry);

  // The output projection of a layer, `width` rows of heads x head_dim_v. Once for each layer.
  void SetProjection(size_t layer, std::span<const float> matrix);

  // A document's rows, and what was captured while they were computed. `seed` chooses the positions that its
  // queries are seen from.
  void Add(const engine::Captured& captured, const engine::KvBlob& blob, uint64_t seed);

  // The matrix of a KV head, head_dim x head_dim. Something must have entered.
  std::vector<float> OfKeys(size_t layer, size_t head) const;
  std::vector<float> OfValues(size_t layer, size_t head) const;

  HeadMatrices Matrices() const;

  // What has entered, without the projections.
  std::vector<uint8_t> Save() const;
  // False when the bytes are not those of a metric of this geometry; it is then as it was.
  bool Restore(std::span<const uint8_t> saved);

 private:
  struct Head {
    std::vector<double> queries;  // sum of q q^T
    std::vector<double> values;   // sum of v v^T
    std::vector<double> value;    // sum of v
    std::vector<double> gram;     // sum of Wo^T Wo
  };
  Head& At(size_t layer, size_t head) { return heads_[layer * kv_heads_ + head]; }
  const Head& At(size_t layer, size_t head) const { return heads_[layer * kv_heads_ + head]; }
  void AddQueries(const engine::Captured& captured, uint64_t seed);
  void AddValues(const engine::KvBlob& blob);
  // Calls body(pointer, doubles) with all that Save keeps.
  template <class Self, class Body>
  static void ForSums(Self* self, const Body& body);
  double ResidualSquare(size_t layer) const;
  std::vector<float> Scaled(const std::vector<double>& sum, double factor) const;

  const size_t layers_, kv_heads_, group_, dim_k_, dim_v_, width_;  // group_: query heads of a KV head
  const KeyFrame frame_;
  std::vector<Head> heads_;
  std::vector<double> residual_;                     // by layer, sum of mean squares
  double queries_ = 0, values_ = 0, residuals_ = 0;  // how many entered the sums
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_METRIC_H_
