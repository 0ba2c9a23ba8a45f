#include "kvartet/selection_run.h"

#include <algorithm>
#include <cmath>

#include "kvartet/clock.h"
#include "kvartet/generate.h"
#include "kvartet/quality_metrics.h"
#include "kvartet/repetition.h"

namespace kvt::cli {
namespace {

// Rows of one batch: below the engine's threshold, so that a token has the bits that it has alone.
constexpr size_t kRows = 32;
constexpr int32_t kNever = INT32_MAX;

int32_t Share(size_t tokens, int32_t percent) {
  return static_cast<int32_t>((tokens * static_cast<size_t>(percent) + 99) / 100);
}

}  // namespace

void CheckBudgets(const SelectionSettings& settings, const TextDocument& document) {
  const auto check = [&](const char* what, size_t tokens, int32_t least, const char* options) {
    for (const int32_t percent : settings.budgets) {
      const int32_t share = Share(tokens, percent);
      if (share >= least) continue;
      throw Failure(document.name + ": --budget " + std::to_string(percent) + " keeps " +
                    std::to_string(share) + " of " + std::to_string(tokens) + " tokens of " + what +
                    ", fewer than the " + std::to_string(least) + " that always stay (" + options + ")");
    }
  };
  // The last token of a context is the first of its output.
  const size_t context = std::min(document.tokens.size(), static_cast<size_t>(settings.context)) - 1;
  check("the context", context, settings.window + settings.sinks, "--window and --sinks");
  if (settings.long_tokens > 0)
    check("the long output", static_cast<size_t>(settings.long_tokens), settings.window, "--window");
}

SelectionRun::SelectionRun(const engine::Engine& engine, const Model& model,
                           const SelectionSettings& settings)
    : engine_(engine), model_(model), settings_(settings) {
  engine::SessionOptions options;
  options.context_tokens = std::max(settings.context + settings.tokens,
                                    settings.long_tokens == 0 ? 0 : settings.prompt + settings.long_tokens);
  options.threads = settings.threads;
  options.capture_every = 1;
  session_ = Take(engine.NewSession(options), "session");
}

// Gives the sequence inputs [begin, end).
void SelectionRun::Force(const Reference& reference, size_t begin, size_t end, const See& see) {
  const std::span<const int32_t> inputs = reference.inputs;
  while (begin < end) {
    const auto part = inputs.subspan(begin, std::min(kRows, end - begin));
    const std::vector<engine::Choice> choices = Take(session_->DecodeBatch(part), "output");
    for (size_t row = 0; row < part.size(); ++row)
      see(begin + row, session_->Logits(static_cast<int32_t>(row)), choices[row].token);
    begin += part.size();
  }
}

// The session holds the prompt's rows and the inputs after them, which are given again, cut as they will be
// for the methods.
void SelectionRun::FillFull(Reference* reference) {
  const size_t count = reference->inputs.size();
  const bool thoughts = reference->every < count;
  Take(session_->Truncate(reference->rows.tokens()), "truncate");
  session_->CaptureFrom(thoughts ? session_->Length() : kNever);
  reference->logits.reserve(count * static_cast<size_t>(engine_.geometry().vocab));
  for (size_t begin = 0; begin < count; begin += reference->every) {
    Force(*reference, begin, std::min(begin + reference->every, count),
          [&](size_t, std::span<const float> logits, int32_t choice) {
            reference->logits.insert(reference->logits.end(), logits.begin(), logits.end());
            reference->choices.push_back(choice);
          });
  }
  if (!thoughts) return;
  const engine::KvBlob rows = Take(session_->Export(0, session_->Length()), "rows");
  reference->thresholds = FindThresholds(model_, rows, session_->TakeCaptured());
}

SelectionRun::Reference SelectionRun::Refer(const std::string& stage, std::span<const int32_t> prompt,
                                            const Show& show) {
  const bool once = stage == kPrefillStage;
  const auto before = prompt.first(prompt.size() - 1);
  const auto count = static_cast<int32_t>(before.size());
  Take(session_->Truncate(0), "truncate");
  session_->CaptureFrom(once ? count - settings_.window : kNever);
  Take(session_->Prefill(before, 0,
                         [&](int32_t done, int32_t total) {
                           show(stage + ", prefill, " + std::to_string(done) + " of " +
                                std::to_string(total) + " tokens");
                           return true;
                         }),
       "prefill");
  engine::Captured captured = session_->TakeCaptured();
  session_->CaptureFrom(kNever);
  Reference reference{
      .stage = stage,
      .rows = Take(session_->Export(0, count), "rows"),
      .captured = std::move(captured),
      .inputs = GeneratePlain(
          session_.get(), prompt.back(), once ? settings_.tokens : settings_.long_tokens, [&](size_t done) {
            show(stage + ", output of the full cache, " + std::to_string(done) + " tokens");
          })};
  reference.first = static_cast<uint32_t>(once ? settings_.sinks : count);
  reference.every = once ? reference.inputs.size() : static_cast<size_t>(settings_.every);
  FillFull(&reference);
  return reference;
}

SelectionLimits SelectionRun::LimitsOf(const Reference& reference, int32_t percent) const {
  const bool once = reference.stage == kPrefillStage;
  const size_t tokens = once ? static_cast<size_t>(reference.rows.tokens()) : reference.inputs.size();
  SelectionLimits limits;
  limits.budget = static_cast<uint32_t>(Share(tokens, percent)) + (once ? 0 : reference.first);
  limits.first = reference.first;
  limits.window = static_cast<uint32_t>(settings_.window);
  limits.thresholds = reference.thresholds;
  return limits;
}

void SelectionRun::Thin(SelectionPolicy* policy, const engine::Captured& captured, SelectionSample* sample) {
  engine::KvBlob rows = Take(session_->Export(0, session_->Length()), "rows");
  const double begin = ThreadMicroseconds();
  const std::vector<uint32_t> kept = policy->Choose(rows, captured);
  const bool merged = policy->Merge(&rows, captured, kept);
  sample->select_ms += (ThreadMicroseconds() - begin) / 1000;
  if (merged) Take(session_->Commit(rows), "merged rows");
  std::vector<int32_t> positions;
  positions.reserve(kept.size());
  for (const uint32_t token : kept) positions.push_back(rows.positions()[token]);
  const double chosen = ThreadMicroseconds();
  Take(session_->Keep(positions), sample->method.c_str());
  sample->drop_ms += (ThreadMicroseconds() - chosen) / 1000;
  ++sample->thinnings;
  sample->cells = session_->Cells();
  sample->of = session_->Length();
}

SelectionSample SelectionRun::MeasureMethod(const Reference& reference, const SelectionMethod& method,
                                            int32_t percent) {
  const SelectionLimits limits = LimitsOf(reference, percent);
  SelectionSample sample{.stage = reference.stage, .method = method.label, .budget_percent = percent};
  sample.budget = static_cast<int32_t>(limits.budget);
  SelectionPolicy policy(model_, method, limits);
  Take(session_->Truncate(0), "truncate");
  Take(session_->Commit(reference.rows), "commit");
  const size_t count = reference.inputs.size();
  const auto vocab = static_cast<size_t>(engine_.geometry().vocab);
  const auto see = [&](size_t i, std::span<const float> logits, int32_t choice) {
    sample.kl += KlDivergence(std::span(reference.logits).subspan(i * vocab, vocab), logits);
    const bool same = choice == reference.choices[i];
    sample.same_choice += same ? 1 : 0;
    if (same && sample.equal_prefix == static_cast<int32_t>(i)) ++sample.equal_prefix;
  };
  if (reference.every == count) Thin(&policy, reference.captured, &sample);
  for (size_t begin = 0; begin < count; begin += reference.every) {
    const size_t end = std::min(begin + reference.every, count);
    const auto since = static_cast<int32_t>(end - begin);
    const bool thin = end < count;
    session_->CaptureFrom(thin ? session_->Length() + since - policy.Observed(since) : kNever);
    Force(reference, begin, end, see);
    if (sample.thinnings > 0) sample.most_cells = std::max(sample.most_cells, session_->Cells());
    if (thin) Thin(&policy, session_->TakeCaptured(), &sample);
  }
  sample.outputs = static_cast<int32_t>(count);
  sample.kl /= static_cast<double>(count);
  sample.same_choice /= static_cast<double>(count);
  sample.select_ms /= sample.thinnings;
  sample.drop_ms /= sample.thinnings;
  if (!std::isfinite(sample.kl)) throw Failure(method.label + ": the engine's logits are not finite");
  return sample;
}

SelectionDocument SelectionRun::Measure(const TextDocument& document, const Show& show) {
  SelectionDocument result;
  result.name = document.name;
  const std::span<const int32_t> tokens = document.tokens;
  const auto stage = [&](const char* name, int32_t prompt, const std::vector<SelectionMethod>& methods) {
    const Reference reference =
        Refer(name, tokens.first(std::min(tokens.size(), static_cast<size_t>(prompt))), show);
    if (reference.every < reference.inputs.size()) {
      result.thresholds = reference.thresholds.has_value();
      result.repeated = RepeatedShare(reference.inputs);
    }
    for (const int32_t percent : settings_.budgets) {
      for (const SelectionMethod& method : methods) {
        show(std::string(name) + ", " + method.label + ", " + std::to_string(percent) + " %");
        result.samples.push_back(MeasureMethod(reference, method, percent));
      }
    }
  };
  stage(kPrefillStage, settings_.context, PrefillMethods());
  if (settings_.long_tokens > 0) stage(kLongStage, settings_.prompt, LongMethods());
  return result;
}

}  // namespace kvt::cli
