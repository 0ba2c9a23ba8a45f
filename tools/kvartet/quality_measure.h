// Measures methods on one document after another. Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_MEASURE_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_MEASURE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvartet/documents.h"
#include "kvartet/library.h"
#include "kvartet/quality.h"
#include "kvartet/quality_methods.h"
#include "kvartet/quality_metrics.h"
#include "kvartet/stream_codec.h"

namespace kvt::cli {

Codec MakeMethodCodec(const Model& model, const QualityMethod& method, std::span<const uint8_t> profile);

// A method on one document.
struct MethodSample {
  double kl = 0;           // mean over the scored tokens
  double same_choice = 0;  // share of tokens whose first choice is the full cache's
  double likelihood = 0;   // sum of negative log-likelihoods of the tokens that follow
  Sizes sizes;
  double encode_us = 0;  // of one thread's processor time for the whole context, the fastest of several
  double decode_us = 0;
};

struct DocumentSample {
  std::string name;
  double full_likelihood = 0;
  std::vector<MethodSample> methods;  // in the order of the run's
};

class QualityRun {
 public:
  using Show = std::function<void(const std::string&)>;

  // Both are borrowed. The document has context + continuation tokens.
  QualityRun(const engine::Engine& engine, const Model& model, const QualitySettings& settings)
      : engine_(engine), model_(model), settings_(settings) {}

  void Add(const QualityMethod& method, Codec codec) { methods_.push_back({method, std::move(codec)}); }

  DocumentSample Measure(const TextDocument& document, const Show& show);

 private:
  struct Entry {
    QualityMethod method;
    Codec codec;
  };
  // What a sequence makes of the continuation: a row of logits and the first choice after each token.
  struct Output {
    std::vector<float> logits;
    std::vector<int32_t> choices;
  };

  std::unique_ptr<engine::Session> NewSession() const;
  Output Force(engine::Session& session, std::span<const int32_t> tokens) const;
  engine::KvBlob Code(const Entry& entry, std::span<const int32_t> context, const engine::KvBlob& blob,
                      MethodSample* sample);
  void Score(const Output& full, const Output& other, std::span<const int32_t> tokens,
             const std::string& what, DocumentSample* document, MethodSample* sample) const;

  const engine::Engine& engine_;
  const Model& model_;
  const QualitySettings& settings_;
  std::vector<Entry> methods_;
  PartEncoder encoder_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_MEASURE_H_
