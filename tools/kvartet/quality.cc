#include "kvartet/quality.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "engine/f32_copy.h"
#include "engine/sha256_file.h"
#include "kvartet/calibrate_command.h"
#include "kvartet/calibration.h"
#include "kvartet/documents.h"
#include "kvartet/files.h"
#include "kvartet/library.h"
#include "kvartet/profile.h"
#include "kvartet/progress_line.h"
#include "kvartet/quality_measure.h"
#include "kvartet/quality_report.h"

namespace kvt::cli {
namespace {

namespace fs = std::filesystem;

// The file whose weights are measured, and how the report words it.
struct Weights {
  std::string path;
  std::string words;
};

// The f32 copy has the digest of its source in its name: it cannot be that of another file.
Weights PrepareWeights(const QualitySettings& settings, ProgressLine* progress) {
  const std::string file = fs::path(settings.model).filename().string();
  if (settings.weights == "shipped") return {settings.model, "those of " + file + " as they are"};
  const std::string digest = Hex(Take(engine::Sha256File(settings.model), "--model"));
  const std::string folder = settings.deps + "/models";
  Weights weights;
  weights.path = folder + "/" + fs::path(file).stem().string() + "-" + digest.substr(0, 16) + ".f32.gguf";
  weights.words = "those of " + file + " converted to f32";
  if (fs::exists(weights.path)) return weights;
  const uint64_t bytes = Take(engine::F32WeightBytes(settings.model), "--model");
  progress->Show("weights: writing an f32 copy of " + file + ", " + std::to_string(bytes >> 20) +
                 " MiB, once");
  std::error_code code;
  fs::create_directories(folder, code);
  Take(engine::WriteF32Copy(settings.model, weights.path), "--weights f32");
  return weights;
}

void CheckLengths(const QualitySettings& settings, const engine::Geometry& geometry) {
  const int64_t exempt = int64_t{settings.sinks} + settings.window;
  if (exempt >= settings.context) {
    throw Failure("--sinks and --window leave nothing to code: " + std::to_string(exempt) + " of " +
                  std::to_string(settings.context) + " tokens are exempt");
  }
  const int32_t all = settings.context + settings.continuation;
  if (all > geometry.trained_context) {
    throw Failure("--context and --continuation are " + std::to_string(all) +
                  " tokens, more than the model's context of " + std::to_string(geometry.trained_context));
  }
}

std::vector<TextDocument> Documents(const QualitySettings& settings, const engine::Engine& engine) {
  std::vector<std::string> files = settings.files;
  if (files.empty()) files = FilesIn(settings.deps + "/texts/quality");
  if (files.empty()) {
    throw Failure("no documents: " + settings.deps +
                  "/texts/quality is empty; run ./bootstrap deps, or name text files");
  }
  if (settings.documents > 0) {
    const auto asked = static_cast<size_t>(settings.documents);
    if (asked > files.size()) {
      throw Failure("--documents is " + std::to_string(asked) + ", there are " +
                    std::to_string(files.size()) + " documents");
    }
    files.resize(asked);
  }
  DocumentCut cut;
  cut.min_tokens = cut.max_tokens = settings.context + settings.continuation;
  return ReadDocuments(engine, files, cut);
}

// A profile that the user names; checked here, so that its path is in the message.
std::vector<uint8_t> ReadProfile(const std::string& path, const Model& model, uint32_t ratio) {
  std::vector<uint8_t> profile = ReadFile(path);
  try {
    ProfileFingerprint(profile);
    MakeTransform(model, profile, ratio);
  } catch (const Failure& failure) {
    std::string message = "--profile " + path + ": " + failure.what();
    if (failure.status == KVT_ERR_MISMATCH)
      message += "; a profile is for the weights it was calibrated with, see --weights";
    throw Failure(message, failure.status);
  }
  return profile;
}

// The profile that the methods need. Those that need none are made first, so that a wrong name shows before
// a calibration.
std::vector<uint8_t> Profile(const QualitySettings& settings, const std::vector<QualityMethod>& methods,
                             const engine::Engine& engine, const Model& model, ProgressLine* progress) {
  uint32_t least = 0;
  for (const QualityMethod& method : methods) {
    if (!method.NeedsProfile()) {
      MakeMethodCodec(model, method, {});
    } else if (least == 0 || method.ratio < least) {
      least = method.ratio;
    }
  }
  if (least == 0) return {};
  if (!settings.profile.empty()) return ReadProfile(settings.profile, model, least);
  CalibrationSettings calibration;
  calibration.texts = DefaultTexts(settings.deps);
  calibration.ratio_min = std::min(calibration.ratio_min, least);
  return ReadFile(EnsureProfile(engine, model, calibration, settings.deps,
                                [&](const std::string& text) { progress->Show(text); }));
}

}  // namespace

int RunQuality(const QualitySettings& settings) {
  ProgressLine progress;
  QualityReport report;
  report.settings = settings;
  report.methods = ParseMethods(settings.methods);
  for (const std::string* path : {&settings.json, &settings.markdown}) {
    if (!path->empty()) CheckWritable(*path);
  }
  const Weights weights = PrepareWeights(settings, &progress);
  progress.Show("loading the model");
  const std::unique_ptr<engine::Engine> engine = Take(engine::Engine::Open(weights.path), "--model");
  const engine::Geometry& geometry = engine->geometry();
  report.model = geometry.description;
  report.weights = weights.words;
  report.weights_sha256 = Hex(geometry.weights_sha256);
  CheckLengths(settings, geometry);
  const std::vector<TextDocument> documents = Documents(settings, *engine);
  const Model model = MakeModel(geometry);
  const std::vector<uint8_t> profile = Profile(settings, report.methods, *engine, model, &progress);
  if (!profile.empty()) report.profile = ProfileFingerprint(profile);
  report.profile_bytes = profile.size();

  QualityRun run(*engine, model, settings);
  for (const QualityMethod& method : report.methods) run.Add(method, MakeMethodCodec(model, method, profile));
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string stage = "document " + std::to_string(i + 1) + " of " +
                              std::to_string(documents.size()) + ", " + documents[i].name + ": ";
    report.documents.push_back(
        run.Measure(documents[i], [&](const std::string& text) { progress.Show(stage + text); }));
  }
  progress.Clear();
  const std::string markdown = ToMarkdown(report);
  std::fputs(markdown.c_str(), stdout);
  if (!settings.markdown.empty()) WriteFile(settings.markdown, markdown);
  if (!settings.json.empty()) WriteFile(settings.json, ToJson(report).dump(2) + "\n");
  return 0;
}

}  // namespace kvt::cli
