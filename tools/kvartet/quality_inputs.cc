#include "kvartet/quality_inputs.h"

#include <algorithm>
#include <filesystem>

#include "engine/f32_copy.h"
#include "engine/sha256_file.h"
#include "kvartet/calibrate_command.h"
#include "kvartet/calibration.h"
#include "kvartet/documents.h"
#include "kvartet/files.h"
#include "kvartet/profile.h"
#include "kvartet/quality_measure.h"

namespace kvt::cli {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kLeastTokens = 16;  // of a text to be read

// A profile that the user names; checked here, so that its path is in the message.
std::vector<uint8_t> ReadProfile(const std::string& path, const Model& model,
                                 const std::vector<QualityMethod>& methods) {
  std::vector<uint8_t> profile = ReadFile(path);
  try {
    ProfileFingerprint(profile);
    for (const QualityMethod& method : methods) {
      if (method.NeedsProfile()) MakeMethodCodec(model, method, profile);
    }
  } catch (const Failure& failure) {
    std::string message = "--profile " + path + ": " + failure.what();
    if (failure.status == KVT_ERR_MISMATCH)
      message += "; a profile is for the weights it was calibrated with, see --weights";
    throw Failure(message, failure.status);
  }
  return profile;
}

}  // namespace

// The f32 copy has the digest of its source in its name: it cannot be that of another file.
QualityWeights PrepareWeights(const QualitySettings& settings, ProgressLine* progress) {
  const std::string file = fs::path(settings.model).filename().string();
  if (settings.weights == "shipped") return {settings.model, "those of " + file + " as they are"};
  const std::string digest = Hex(Take(engine::Sha256File(settings.model), "--model"));
  const std::string folder = settings.deps + "/models";
  QualityWeights weights;
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

ContextCut CutFor(const QualitySettings& settings, const engine::Engine& engine) {
  ContextCut cut;
  cut.continuation = settings.continuation;
  cut.lengths = ContextLengths(settings.contexts, settings.continuation,
                               int64_t{settings.sinks} + settings.window, engine.geometry().trained_context);
  cut.marker = Take(engine.Tokenize(kCopyMarker, false, false), "tokens of the copy marker");
  return cut;
}

std::vector<QualityDocument> QualityDocuments(const QualitySettings& settings, const ContextCut& cut,
                                              const engine::Engine& engine) {
  std::vector<std::string> files = settings.files;
  if (files.empty() && settings.copy_files.empty())
    files = CollectedTexts(settings.deps + "/texts/" + (settings.full ? "quality-full" : "quality"));
  const size_t texts = files.size();
  files.insert(files.end(), settings.copy_files.begin(), settings.copy_files.end());
  KeepFirst(settings.documents, &files);
  const bool listed = settings.files.empty() && settings.copy_files.empty();
  DocumentCut tokens;
  tokens.min_tokens = listed ? kLeastTokens : cut.lengths.back() + cut.continuation;
  tokens.max_tokens = cut.lengths.front() + cut.continuation;
  std::vector<QualityDocument> documents;
  for (TextDocument& text : ReadDocuments(engine, files, tokens)) {
    const bool copy = documents.size() >= texts || IsCopyProbe(text.name);
    if (const int32_t least = LeastCopyContext(cut, settings.window); copy && cut.lengths.back() < least) {
      throw Failure(text.name + ": a copy probe with " + std::to_string(cut.continuation) +
                    " tokens to copy needs a context of " + std::to_string(least) + " tokens or more, and " +
                    std::to_string(cut.lengths.back()) + " are asked for");
    }
    documents.push_back({std::move(text.name), copy, std::move(text.tokens)});
  }
  // A list serves all lengths, each with those of its texts that are long enough.
  std::erase_if(documents,
                [&](const QualityDocument& each) { return !HasContext(each, cut.lengths.back(), cut); });
  if (documents.empty()) {
    throw Failure("no text of the list has a context of " + std::to_string(cut.lengths.back()) +
                  " tokens and " + std::to_string(cut.continuation) + " after it");
  }
  return documents;
}

std::vector<uint8_t> QualityProfile(const QualitySettings& settings,
                                    const std::vector<QualityMethod>& methods, const engine::Engine& engine,
                                    const Model& model, ProgressLine* progress) {
  uint32_t least = 0;
  for (const QualityMethod& method : methods) {
    if (!method.NeedsProfile()) {
      MakeMethodCodec(model, method, {});
    } else if (least == 0 || method.ratio < least) {
      least = method.ratio;
    }
  }
  if (least == 0) return {};
  if (!settings.profile.empty()) return ReadProfile(settings.profile, model, methods);
  CalibrationSettings calibration;
  calibration.texts = DefaultTexts(settings.deps);
  calibration.ratio_min = std::min(calibration.ratio_min, least);
  calibration.group_layers = settings.group_layers;
  return ReadFile(EnsureProfile(engine, model, calibration, settings.deps,
                                [&](const std::string& text) { progress->Show(text); }));
}

}  // namespace kvt::cli
