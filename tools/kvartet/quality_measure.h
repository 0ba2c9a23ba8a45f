// Measures methods on one document after another. Threads: one at a time; several runs at the same time may
// share engine, model and methods.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_MEASURE_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_MEASURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvartet/library.h"
#include "kvartet/quality.h"
#include "kvartet/quality_coder.h"
#include "kvartet/quality_contexts.h"
#include "kvartet/quality_methods.h"
#include "kvartet/quality_sample.h"

namespace kvt::cli {

Codec MakeMethodCodec(const Model& model, const QualityMethod& method, std::span<const uint8_t> profile);

// A method that is ready to be measured.
struct MeasuredMethod {
  QualityMethod method;
  Codec codec;
};

// What all jobs of a run share; borrowed and not changed.
struct QualityPlan {
  const engine::Engine& engine;
  const Model& model;
  const QualitySettings& settings;
  const ContextCut& cut;
  std::span<const MeasuredMethod> methods;
};

class QualityRun {
 public:
  // False ends the measurement with a Failure.
  using Show = std::function<bool(const std::string&)>;

  explicit QualityRun(const QualityPlan& plan);

  // One sample for each context length that the document has, in the order of the cut.
  std::vector<DocumentSample> Measure(const QualityDocument& document, const Show& show);

 private:
  // What a sequence makes of the continuation: a row of logits and the first choice after each token.
  struct Output {
    std::vector<float> logits;
    std::vector<int32_t> choices;
  };
  struct Prefilled {
    engine::KvBlob rows;
    std::vector<int8_t> importance;  // empty unless a method wants it
    double importance_us = 0;        // of one thread's processor time
  };

  std::unique_ptr<engine::Session> NewSession(int32_t capture_every) const;
  engine::KvBlob Rows(engine::Session& session, const QualityContext& context, const std::string& name,
                      const Show& show) const;
  Prefilled Prefill(engine::Session& session, const QualityContext& context, const std::string& name,
                    engine::Captured* text, const Show& show) const;
  Output Force(engine::Session& session, std::span<const int32_t> tokens, bool keep_logits) const;
  std::vector<int32_t> Greedy(engine::Session& session, int32_t first, int32_t choice) const;
  int32_t EqualPrefix(engine::Session& session, std::span<const int32_t> greedy) const;
  engine::KvBlob Code(const MeasuredMethod& method, const Prefilled& prefilled, MethodSample* sample);
  void Score(const Output& full, const Output& other, std::span<const int32_t> tokens,
             const std::string& what, DocumentSample* document, MethodSample* sample) const;
  DocumentSample MeasureContext(const QualityContext& context, const Prefilled& prefilled,
                                engine::Session& session, const std::string& name, const Show& show);

  const QualityPlan plan_;
  const bool importance_;  // some method wants it
  ContextCoder coder_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_MEASURE_H_
