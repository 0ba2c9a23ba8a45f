#include "kvartet/quality.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "engine/sha256_file.h"
#include "kvartet/calibration.h"
#include "kvartet/files.h"
#include "kvartet/library.h"
#include "kvartet/profile.h"
#include "kvartet/progress_line.h"
#include "kvartet/quality_inputs.h"
#include "kvartet/quality_jobs.h"
#include "kvartet/quality_measure.h"
#include "kvartet/quality_memory.h"
#include "kvartet/quality_report.h"
#include "kvartet/quality_state.h"

namespace kvt::cli {
namespace {

constexpr int32_t kMostJobs = 8;

// With what the user left to us.
QualitySettings Complete(QualitySettings settings) {
  if (settings.methods.empty()) settings.methods = DefaultMethods(settings.full);
  if (settings.repeat == 0) settings.repeat = settings.full ? 1 : 3;
  if (settings.jobs == 0) {
    const auto cores = static_cast<int32_t>(std::thread::hardware_concurrency());
    settings.jobs = settings.full ? std::clamp(cores / settings.threads, 1, kMostJobs) : 1;
  }
  return settings;
}

// Pseudo-random rows: what memory a codec takes does not depend on what they hold.
engine::KvBlob NoiseRows(const engine::KvGeometry& geometry, int32_t tokens) {
  engine::KvBlob blob = Take(engine::KvBlob::Create(geometry, 0, tokens), "rows");
  uint32_t state = 1;
  for (const auto& [rows, row_bytes] : {std::pair(&engine::KvBlob::K, geometry.row_bytes_k()),
                                        std::pair(&engine::KvBlob::V, geometry.row_bytes_v())}) {
    for (int32_t layer = 0; layer < geometry.layers; ++layer) {
      uint8_t* const base = (blob.*rows)(layer).base;
      for (uint64_t at = 0; at < row_bytes * static_cast<uint64_t>(tokens); at += 2) {
        state = state * 1664525 + 1013904223;
        // A sign and a magnitude from 1/8 to 1.
        const uint32_t half = (state >> 16 & 0x8000) | (0x3000 + (state >> 8) % 0x0c00);
        base[at] = static_cast<uint8_t>(half);
        base[at + 1] = static_cast<uint8_t>(half >> 8);
      }
    }
  }
  return blob;
}

// Makes the codecs one after another, and measures their memory on the way when it is asked for.
std::vector<MeasuredMethod> MakeMethods(const QualityReport& report, const Model& model,
                                        std::span<const uint8_t> profile, const engine::KvGeometry& geometry,
                                        std::vector<std::optional<MethodMemory>>* memory) {
  const QualitySettings& settings = report.settings;
  std::vector<MeasuredMethod> methods;
  if (!settings.full) {
    for (const QualityMethod& method : report.methods)
      methods.push_back({method, MakeMethodCodec(model, method, profile)});
    return methods;
  }
  const engine::KvBlob blob = NoiseRows(geometry, report.contexts.back());
  engine::KvBlob decoded = NoiseRows(geometry, report.contexts.back());
  for (const QualityMethod& method : report.methods) {
    methods.push_back({method, {}});
    const Codec& codec = methods.back().codec;
    ContextCoder coder(settings.sinks, settings.window);
    std::span<const uint8_t> frame;
    const auto kept = PeakBytes([&] { methods.back().codec = MakeMethodCodec(model, method, profile); });
    const auto encode = PeakBytes([&] { frame = coder.Encode(codec, blob, {}); });
    const auto decode = PeakBytes([&] { DecodeContext(codec, frame, decoded); });
    memory->push_back(kept && encode && decode ? std::optional(MethodMemory{*kept, *encode, *decode})
                                               : std::nullopt);
  }
  return methods;
}

// The programs that compute: results of another build are not this run's.
std::string BuildDigest() {
  std::string digest = Hex(Take(engine::Sha256File("/proc/self/exe"), "this program"));
  Dl_info library = {};
  if (dladdr(reinterpret_cast<const void*>(&kvt_codec_encode), &library) != 0 && library.dli_fname != nullptr)
    digest += Hex(Take(engine::Sha256File(library.dli_fname), "the library"));
  return digest;
}

// Names all on which the samples depend.
std::string RunIdentity(const QualityReport& report, const Model& model,
                        const std::vector<QualityDocument>& documents, const ContextCut& cut) {
  const QualitySettings& settings = report.settings;
  std::string label = "quality " + BuildDigest() + " " + report.profile;
  for (const QualityMethod& method : report.methods) label += " " + method.label;
  for (const int32_t length : cut.lengths) label += " " + std::to_string(length);
  for (const int64_t value : {int64_t{cut.continuation}, int64_t{settings.repeat}, int64_t{settings.threads},
                              int64_t{settings.sinks}, int64_t{settings.window}, int64_t{settings.full}})
    label += " " + std::to_string(value);
  std::vector<int32_t> all;
  for (const QualityDocument& document : documents) {
    label += " " + document.name + " " + std::to_string(document.tokens.size()) + (document.copy ? "c" : "");
    all.insert(all.end(), document.tokens.begin(), document.tokens.end());
  }
  return Hex(SequenceKey(model, all, label));
}

}  // namespace

std::vector<std::string> DefaultMethods(bool full) {
  if (!full) return {"int8", "kivi4", "kivi2", "transform@8", "transform@16"};
  return {"lossless", "int8",    "fp8",          "kivi4",    "kivi2",    "rotated4",      "cachegen",
          "kvtc@8",   "kvtc@16", "transform@16", "dense@20", "dense@40", "dense@40:finer"};
}

int RunQuality(const QualitySettings& asked) {
  ProgressLine progress;
  QualityReport report;
  report.settings = Complete(asked);
  const QualitySettings& settings = report.settings;
  report.methods = ParseMethods(settings.methods);
  for (const std::string* path : {&settings.json, &settings.markdown, &settings.html}) {
    if (!path->empty()) CheckWritable(*path);
  }
  const QualityWeights weights = PrepareWeights(settings, &progress);
  progress.Show("loading the model");
  const std::unique_ptr<engine::Engine> engine = Take(engine::Engine::Open(weights.path), "--model");
  const engine::Geometry& geometry = engine->geometry();
  report.model = geometry.description;
  report.weights = weights.words;
  report.weights_sha256 = Hex(geometry.weights_sha256);
  const ContextCut cut = CutFor(settings, *engine);
  report.contexts.assign(cut.lengths.rbegin(), cut.lengths.rend());
  const std::vector<QualityDocument> documents = QualityDocuments(settings, cut, *engine);
  const Model model = MakeModel(geometry);
  const std::vector<uint8_t> profile = QualityProfile(settings, report.methods, *engine, model, &progress);
  if (!profile.empty()) {
    report.profile = ProfileFingerprint(profile);
    report.mflop = ProfileMflop(profile);
  }
  report.profile_bytes = profile.size();

  if (settings.full) progress.Show("memory of each method");
  const std::vector<MeasuredMethod> methods =
      MakeMethods(report, model, profile, geometry.kv, &report.memory);
  const std::string identity = RunIdentity(report, model, documents, cut);
  QualityState state(settings.state.empty()
                         ? ProfileFolder(settings.deps) + "/quality-" + identity.substr(0, 16) + ".state"
                         : settings.state,
                     identity);
  report.documents = MeasureDocuments({*engine, model, settings, cut, methods}, documents, &state, &progress);
  progress.Clear();
  const std::string markdown = ToMarkdown(report);
  std::fputs(markdown.c_str(), stdout);
  if (!settings.markdown.empty()) WriteFile(settings.markdown, markdown);
  if (!settings.json.empty()) WriteFile(settings.json, ToJson(report).dump(2) + "\n");
  if (!settings.html.empty()) WriteFile(settings.html, ToHtml(report));
  state.Finish();
  return 0;
}

}  // namespace kvt::cli
