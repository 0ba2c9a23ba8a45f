// Takes queries and residual streams out of the engine's graph while it is computed.
//
// The engine asks of each node whether we want to see it, and computes the nodes between two such nodes
// together; what we read is not changed, so logits keep their bits. Queries are what the attention node
// reads, that is after RoPE and any norm; the residual stream is what the norm ahead of the attention reads.
// Invariant: between decodes all layers have the same rows. Threads: the session's.
#ifndef KVARTET_TOOLS_ENGINE_RECORDER_H_
#define KVARTET_TOOLS_ENGINE_RECORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/captured.h"
#include "engine/engine.h"
#include "engine/result.h"

struct ggml_tensor;

namespace kvt::engine {

class Recorder {
 public:
  // Of every `every`-th position: those p with (p + 1) % every == 0.
  Recorder(const Geometry& geometry, int32_t every);

  // From now on, of no position before this one.
  void From(int32_t position) { from_ = position; }
  // Ahead of a decode of tokens at positions [begin, begin + count).
  void Begin(int32_t begin, int32_t count);
  // After it. kUnsupported when the engine's graph does not show a layer's queries or residual stream as
  // expected.
  Status End();
  // Forgets positions from `length` on.
  void Cut(int32_t length);
  // All rows since the last call.
  Captured Take();

  // The engine's evaluation callback; `self` is a Recorder.
  static bool OnNode(ggml_tensor* node, bool ask, void* self);

 private:
  struct Layer {
    std::vector<float> queries;  // rows x heads x dim
    std::vector<float> residual;
  };

  bool Wants(const ggml_tensor& node) const;
  void See(const ggml_tensor& node);
  void SeeQueries(const ggml_tensor& queries);
  void SeeResidual(const ggml_tensor& norm);
  void Refuse(const std::string& why);

  const size_t layers_, heads_, dim_, width_;
  const int32_t every_;
  int32_t from_ = 0;
  int32_t count_ = 0;            // tokens of this decode
  std::vector<int32_t> chosen_;  // of them, those that are recorded
  std::vector<int32_t> positions_;
  std::vector<Layer> rows_;
  size_t attentions_ = 0;  // seen in this decode
  std::string refusal_;
};

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_RECORDER_H_
