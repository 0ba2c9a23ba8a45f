#include "kvartet/calibration.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "kvartet/files.h"

namespace kvt::cli {
namespace {

constexpr int32_t kLeastDocument = 1000, kMostDocument = 2000;

// The sum of the documents' tokens.
size_t Tokens(const std::vector<TextDocument>& documents) {
  size_t tokens = 0;
  for (const TextDocument& document : documents) tokens += document.tokens.size();
  return tokens;
}

KeyBytes Identity(const Model& model, const CalibrationPlan& plan) {
  std::string label = "calibration 2 " + std::to_string(plan.settings.ratio_min) + " " +
                      std::to_string(plan.settings.group_layers) + (plan.settings.metric ? " metric" : "") +
                      (plan.settings.weights ? " weights" : "");
  std::vector<int32_t> all;
  for (const TextDocument& document : plan.documents) {
    label += " " + std::to_string(document.tokens.size());
    all.insert(all.end(), document.tokens.begin(), document.tokens.end());
  }
  return SequenceKey(model, all, label);
}

}  // namespace

CalibrationPlan PlanCalibration(const engine::Engine& engine, const Model& model,
                                const CalibrationSettings& settings) {
  CalibrationPlan plan;
  plan.settings = settings;
  const auto texts = static_cast<int32_t>(settings.texts.size());
  int32_t size = settings.document_tokens;
  if (size == 0) {
    size = std::clamp((settings.tokens + texts - 1) / texts, kLeastDocument, kMostDocument);
    size = std::min({size, settings.tokens, engine.geometry().trained_context});
  }
  if (size > engine.geometry().trained_context) {
    throw Failure("documents of " + std::to_string(size) + " tokens are longer than the model's context of " +
                  std::to_string(engine.geometry().trained_context));
  }
  DocumentCut cut;
  cut.max_tokens = size;
  cut.min_tokens = std::min(size, kLeastDocument);
  cut.per_file = settings.tokens / size + 1;
  std::vector<TextDocument> all = ReadDocuments(engine, settings.texts, cut);
  std::stable_sort(all.begin(), all.end(),
                   [](const TextDocument& a, const TextDocument& b) { return a.index < b.index; });
  const size_t found = Tokens(all);
  if (found < static_cast<size_t>(settings.tokens)) {
    throw Failure("the texts are too short: their " + std::to_string(all.size()) + " documents of up to " +
                  std::to_string(size) + " tokens have " + std::to_string(found) + " tokens together, and " +
                  std::to_string(settings.tokens) + " are asked for");
  }
  size_t tokens = 0;
  for (TextDocument& document : all) {
    if (tokens >= static_cast<size_t>(settings.tokens)) break;
    tokens += document.tokens.size();
    plan.documents.push_back(std::move(document));
  }
  plan.identity = Identity(model, plan);
  return plan;
}

std::string CalibrationPlan::FileName(const Model& model) const {
  std::array<uint8_t, KVT_FINGERPRINT_BYTES> fingerprint;
  Check(kvt_model_fingerprint(model.get(), fingerprint.data()), "kvt_model_fingerprint");
  return Hex(fingerprint) + "-ratio" + std::to_string(settings.ratio_min) + "-" +
         std::to_string(Tokens(documents)) + "-" + Hex(ByteSpan(identity).first(8)) + ".kvtp";
}

std::string ProfileFolder(const std::string& deps) {
  std::error_code code;
  if (std::filesystem::is_directory(deps, code)) return deps + "/profiles";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/kvartet";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw Failure("no place for profiles: neither XDG_CACHE_HOME nor HOME is set");
  return std::string(home) + "/.cache/kvartet";
}

std::string EnsureProfile(const engine::Engine& engine, const Model& model,
                          const CalibrationSettings& settings, const std::string& deps,
                          const ShowProgress& show) {
  const CalibrationPlan plan = PlanCalibration(engine, model, settings);
  const std::string path = ProfileFolder(deps) + "/" + plan.FileName(model);
  std::error_code code;
  if (std::filesystem::exists(path, code)) return path;
  const CalibrationResult result = Calibrate(engine, model, plan, path + ".state", show);
  WriteFile(path, {result.profile});
  std::filesystem::remove(path + ".state", code);
  return path;
}

}  // namespace kvt::cli
