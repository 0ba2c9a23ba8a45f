#include "kvartet/calibration.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>

#include "kvartet/clock.h"
#include "kvartet/files.h"
#include "kvartet/prefill_ahead.h"

namespace kvt::cli {
namespace {

constexpr int32_t kLeastDocument = 1000, kMostDocument = 2000;
constexpr std::string_view kStateMagic = "kvartet calibration 1\n";

// The sum of the documents' tokens.
size_t Tokens(const std::vector<TextDocument>& documents) {
  size_t tokens = 0;
  for (const TextDocument& document : documents) tokens += document.tokens.size();
  return tokens;
}

KeyBytes Identity(const Model& model, const CalibrationPlan& plan) {
  std::string label = "calibration " + std::to_string(plan.settings.ratio_min) + " " +
                      std::to_string(plan.settings.group_layers);
  std::vector<int32_t> all;
  for (const TextDocument& document : plan.documents) {
    label += " " + std::to_string(document.tokens.size());
    all.insert(all.end(), document.tokens.begin(), document.tokens.end());
  }
  return SequenceKey(model, all, label);
}

// A state file: magic, identity of the plan, then what kvt_calibration_save gave.
void SaveState(const Calibration& calibration, const CalibrationPlan& plan, const std::string& path,
               std::vector<uint8_t>* buffer) {
  CopyBytes([&](uint8_t* buf, size_t cap,
                size_t* needed) { return kvt_calibration_save(calibration.get(), buf, cap, needed); },
            "kvt_calibration_save", buffer);
  WriteFile(path, {ByteSpan(reinterpret_cast<const uint8_t*>(kStateMagic.data()), kStateMagic.size()),
                   plan.identity, *buffer});
}

std::optional<Calibration> RestoreState(const Model& model, const CalibrationPlan& plan,
                                        const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::nullopt;
  const std::vector<uint8_t> bytes = ReadFile(path);
  const size_t head = kStateMagic.size() + plan.identity.size();
  if (bytes.size() < head || std::memcmp(bytes.data(), kStateMagic.data(), kStateMagic.size()) != 0)
    throw Failure(path + ": is not the state of a calibration; give another path, or delete it");
  Calibration calibration;
  const ByteSpan saved = ByteSpan(bytes).subspan(head);
  try {
    Check(kvt_calibration_restore(model.get(), saved.data(), saved.size(), calibration.out()),
          "kvt_calibration_restore");
  } catch (const Failure& failure) {
    const std::string reason =
        failure.status == KVT_ERR_MISMATCH ? "is the state of another model's calibration" : "is damaged";
    throw Failure(path + ": " + reason + " (" + failure.what() + "); give another path, or delete it",
                  failure.status);
  }
  if (std::memcmp(bytes.data() + kStateMagic.size(), plan.identity.data(), plan.identity.size()) != 0) {
    throw Failure(path +
                  ": is the state of a calibration with other texts or settings; give the same ones again, "
                  "another path, or delete it");
  }
  return calibration;
}

Calibration NewCalibration(const Model& model, const CalibrationSettings& settings) {
  kvt_calibration_options_t options;
  kvt_calibration_options_init(&options, sizeof options);
  options.ratio_min = settings.ratio_min;
  options.group_layers = settings.group_layers;
  Calibration calibration;
  Check(kvt_calibration_create(model.get(), &options, calibration.out()), "kvt_calibration_create");
  return calibration;
}

kvt_calibration_info_t Progress(const Calibration& calibration) {
  kvt_calibration_info_t info = {};
  info.struct_size = sizeof info;
  Check(kvt_calibration_progress(calibration.get(), &info), "kvt_calibration_progress");
  return info;
}

int32_t Jobs(const CalibrationSettings& settings) {
  if (settings.jobs > 0) return settings.jobs;
  return std::clamp<int32_t>(static_cast<int32_t>(std::thread::hardware_concurrency()), 1, 8);
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

CalibrationResult Calibrate(const engine::Engine& engine, const Model& model, const CalibrationPlan& plan,
                            const std::string& state_path, const ShowProgress& show) {
  const Clock clock;
  CalibrationResult result;
  CheckWritable(state_path);
  std::optional<Calibration> restored = RestoreState(model, plan, state_path);
  const Calibration calibration = restored ? std::move(*restored) : NewCalibration(model, plan.settings);
  result.resumed = Progress(calibration).documents;
  const std::string of = " of " + std::to_string(plan.documents.size()) + " documents";
  std::vector<uint8_t> buffer;
  PrefillAhead ahead(engine, plan.documents, result.resumed, Jobs(plan.settings));
  for (size_t i = result.resumed; i < plan.documents.size(); ++i) {
    const engine::KvBlob blob = ahead.Next([&](size_t tokens) {
      show("calibrating, " + std::to_string(i) + of + ": " + std::to_string(tokens) + " tokens computed");
    });
    const BlobView view(blob);
    Check(kvt_calibration_add(calibration.get(), view.get(), 0, static_cast<uint64_t>(blob.tokens())),
          "kvt_calibration_add");
    SaveState(calibration, plan, state_path, &buffer);
    show("calibrating, " + std::to_string(i + 1) + of + ": " + plan.documents[i].name + " has entered");
  }
  show("calibrating, last step: bases");
  CopyBytes([&](uint8_t* buf, size_t cap,
                size_t* needed) { return kvt_calibration_finish(calibration.get(), buf, cap, needed); },
            "kvt_calibration_finish", &result.profile);
  const kvt_calibration_info_t info = Progress(calibration);
  result.documents = info.documents;
  result.tokens = info.tokens;
  result.nonfinite = info.nonfinite;
  result.seconds = clock.Milliseconds() / 1000;
  return result;
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
