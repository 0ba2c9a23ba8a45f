#include "kvartet/selection.h"

#include <algorithm>
#include <cstdio>

#include "kvartet/documents.h"
#include "kvartet/files.h"
#include "kvartet/library.h"
#include "kvartet/progress_line.h"
#include "kvartet/selection_report.h"
#include "kvartet/selection_run.h"

namespace kvt::cli {
namespace {

constexpr int32_t kLeastTokens = 128;  // of a text

void CheckSettings(const SelectionSettings& settings, int32_t trained_context) {
  const auto fits = [&](const char* first, int32_t prompt, const char* second, int32_t tokens) {
    if (prompt + tokens <= trained_context) return;
    throw Failure(std::string(first) + " is " + std::to_string(prompt) + " and " + second + " is " +
                  std::to_string(tokens) + ", together more than the model's context of " +
                  std::to_string(trained_context));
  };
  fits("--context", settings.context, "--tokens", settings.tokens);
  if (settings.long_tokens == 0) return;
  fits("--prompt", settings.prompt, "--long", settings.long_tokens);
  if (settings.every >= settings.long_tokens) {
    throw Failure("--every is " + std::to_string(settings.every) + ", must be less than the " +
                  std::to_string(settings.long_tokens) + " of --long");
  }
}

std::vector<TextDocument> Documents(const SelectionSettings& settings, const engine::Engine& engine) {
  std::vector<std::string> files = settings.files;
  if (files.empty()) files = CollectedTexts(settings.deps + "/texts/quality");
  KeepFirst(settings.documents, &files);
  DocumentCut cut;
  cut.min_tokens = settings.long_tokens > 0 ? std::max(kLeastTokens, settings.prompt) : kLeastTokens;
  cut.max_tokens = std::max(settings.context, cut.min_tokens);
  return ReadDocuments(engine, files, cut);
}

}  // namespace

int RunSelection(const SelectionSettings& settings) {
  ProgressLine progress;
  SelectionReport report;
  report.settings = settings;
  if (!settings.json.empty()) CheckWritable(settings.json);
  progress.Show("loading the model");
  const std::unique_ptr<engine::Engine> engine = Take(engine::Engine::Open(settings.model), "--model");
  const engine::Geometry& geometry = engine->geometry();
  report.model = geometry.description;
  report.weights_sha256 = Hex(geometry.weights_sha256);
  report.token_bytes = geometry.kv.token_bytes();
  CheckSettings(settings, geometry.trained_context);
  const std::vector<TextDocument> documents = Documents(settings, *engine);
  for (const TextDocument& document : documents) CheckBudgets(settings, document);
  const Model model = MakeModel(geometry);
  SelectionRun run(*engine, model, settings);
  for (const TextDocument& document : documents) {
    const std::string done = std::to_string(report.documents.size()) + " of " +
                             std::to_string(documents.size()) + " documents are done: " + document.name;
    report.documents.push_back(
        run.Measure(document, [&](const std::string& text) { progress.Show(done + ", " + text); }));
  }
  progress.Clear();
  std::fputs(ToMarkdown(report).c_str(), stdout);
  if (!settings.json.empty()) WriteFile(settings.json, ToJson(report).dump(2) + "\n");
  return 0;
}

}  // namespace kvt::cli
