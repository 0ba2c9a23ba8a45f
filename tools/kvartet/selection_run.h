// Measures the selection of tokens on one document after another. Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_SELECTION_RUN_H_
#define KVARTET_TOOLS_KVARTET_SELECTION_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvartet/documents.h"
#include "kvartet/library.h"
#include "kvartet/selection.h"
#include "kvartet/selection_policy.h"
#include "kvartet/selection_sample.h"

namespace kvt::cli {

// Throws Failure when a budget leaves a document fewer tokens than always stay.
void CheckBudgets(const SelectionSettings& settings, const TextDocument& document);

class SelectionRun {
 public:
  using Show = std::function<void(const std::string&)>;

  // All are borrowed. Throws Failure.
  SelectionRun(const engine::Engine& engine, const Model& model, const SelectionSettings& settings);

  // Samples of both stages, by stage, budget and method. Throws Failure.
  SelectionDocument Measure(const TextDocument& document, const Show& show);

 private:
  // A prompt, and what the full cache makes of it.
  struct Reference {
    std::string stage;
    engine::KvBlob rows;          // of all tokens of the prompt but the last
    engine::Captured captured;    // queries of the last of them
    std::vector<int32_t> inputs;  // the prompt's last token, and greedy output
    std::vector<float> logits;    // a row for each input
    std::vector<int32_t> choices;
    uint32_t first = 0;  // tokens that all stay
    size_t every = 0;    // inputs between one thinning and the next; all of them: thinned once, ahead of them
    ThoughtThresholds thresholds;
  };
  // Called with the index of an input, its row of logits and its first choice.
  using See = std::function<void(size_t, std::span<const float>, int32_t)>;

  Reference Refer(const std::string& stage, std::span<const int32_t> prompt, const Show& show);
  void Force(const Reference& reference, size_t begin, size_t end, const See& see);
  void FillFull(Reference* reference);
  SelectionLimits LimitsOf(const Reference& reference, int32_t percent) const;
  SelectionSample MeasureMethod(const Reference& reference, const SelectionMethod& method, int32_t percent);
  void Thin(SelectionPolicy* policy, const engine::Captured& captured, SelectionSample* sample);

  const engine::Engine& engine_;
  const Model& model_;
  const SelectionSettings& settings_;
  std::unique_ptr<engine::Session> session_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_SELECTION_RUN_H_
