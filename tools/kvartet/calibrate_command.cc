#include "kvartet/calibrate_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "kvartet/channel.h"
#include "kvartet/clock.h"
#include "kvartet/files.h"
#include "kvartet/prefill_ahead.h"
#include "kvartet/profile.h"
#include "kvartet/progress_line.h"
#include "kvartet/rung_costs.h"

namespace kvt::cli {
namespace {

struct MeasuredRungs {
  std::vector<kvt_profile_rung_t> rungs;
  std::string processor = ProcessorName();
  double seconds = 0;
};

// On the first document, which is computed once more.
MeasuredRungs MeasureOn(const engine::Engine& engine, const Model& model, const CalibrationPlan& plan,
                        const std::vector<uint8_t>& profile, const ShowProgress& show) {
  const Clock clock;
  show("calibrating, costs of codecs");
  const std::span<const TextDocument> documents = std::span(plan.documents).first(1);
  PrefillAhead ahead(engine, documents, 0, /*jobs=*/1);
  const PrefilledDocument document = ahead.Next([](size_t) {});
  MeasuredRungs measured;
  measured.rungs = MeasureRungs(engine, model, CutProbe(documents[0].tokens, document.blob), profile,
                                plan.settings.ratio_min);
  measured.seconds = clock.Milliseconds() / 1000;
  return measured;
}

Json RungsOf(const MeasuredRungs& measured) {
  Json rungs = Json::array();
  for (const kvt_profile_rung_t& rung : measured.rungs) {
    rungs.push_back({{"codec", rung.codec},
                     {"ratio", rung.ratio},
                     {"encode_rate", rung.cost.encode_rate},
                     {"decode_rate", rung.cost.decode_rate},
                     {"reached", rung.cost.ratio},
                     {"quality_class", rung.cost.quality_class}});
  }
  return rungs;
}

// Of each layer, relative to the geometric mean over layers and streams, which is what the library looks at.
Json RelativeWeights(const CalibrationResult& result) {
  double logarithms = 0;
  size_t count = 0;
  for (const std::vector<float>& stream : result.weights) {
    for (const float weight : stream) logarithms += std::log(double{weight});
    count += stream.size();
  }
  if (count == 0) return nullptr;
  const double mean = std::exp(logarithms / static_cast<double>(count));
  Json weights = {{"k", Json::array()}, {"v", Json::array()}};
  for (const float weight : result.weights[0]) weights["k"].push_back(double{weight} / mean);
  for (const float weight : result.weights[1]) weights["v"].push_back(double{weight} / mean);
  return weights;
}

Json Report(const CalibrateCommand& command, const CalibrationPlan& plan, const CalibrationResult& result,
            const MeasuredRungs& measured, const std::string& path) {
  Json documents = Json::array();
  for (const TextDocument& document : plan.documents)
    documents.push_back({{"name", document.name}, {"tokens", document.tokens.size()}});
  return {{"schema", 1},
          {"model", std::filesystem::path(command.model).filename().string()},
          {"profile", path},
          {"bytes", result.profile.size()},
          {"fingerprint", ProfileFingerprint(result.profile)},
          {"ratio_min", plan.settings.ratio_min},
          {"group_layers", plan.settings.group_layers},
          {"mflop_token", ProfileMflop(result.profile)},
          {"tokens", result.tokens},
          {"resumed_documents", result.resumed},
          {"nonfinite", result.nonfinite},
          {"seconds", result.seconds + measured.seconds},
          {"seconds_of",
           {{"documents", result.documents_seconds},
            {"weights", result.weights_seconds},
            {"bases", result.bases_seconds},
            {"rungs", measured.seconds}}},
          {"processor", measured.processor},
          {"rungs", RungsOf(measured)},
          {"metric", plan.settings.metric && result.no_metric.empty()},
          {"no_metric", result.no_metric},
          {"weights", RelativeWeights(result)},
          {"documents", documents}};
}

// "transform 25.1 at 8, 12.4 at 16, 6.1 at 32; dense ..." of a report's products.
std::string ProductsAt(const Json& mflop) {
  std::string text;
  for (const auto& [codec, own] : mflop.items()) {
    if (own.empty()) continue;
    text += (text.empty() ? "" : "; ") + codec;
    for (const char* ratio : {"4", "8", "16", "32", "64"}) {
      if (!own.contains(ratio)) continue;
      char part[64];
      std::snprintf(part, sizeof part, "%s %.3g at %s", text.ends_with(codec) ? "" : ",",
                    own.at(ratio).get<double>(), ratio);
      text += part;
    }
  }
  return text;
}

// "K 0.1 to 20, V ..." of a report's weights.
std::string WeightRanges(const Json& weights) {
  std::string text;
  for (const char* stream : {"k", "v"}) {
    const std::vector<double> own = weights.at(stream).get<std::vector<double>>();
    const auto [least, most] = std::minmax_element(own.begin(), own.end());
    char part[128];
    std::snprintf(part, sizeof part, "%s%s %.3g (layer %td) to %.3g (layer %td)", text.empty() ? "" : ", ",
                  *stream == 'k' ? "K" : "V", *least, least - own.begin(), *most, most - own.begin());
    text += part;
  }
  return text;
}

void Print(const CalibrationResult& result, const MeasuredRungs& measured, const Json& report) {
  std::printf("%s\n  %u documents (%u of them resumed), %llu tokens\n",
              report.at("profile").get<std::string>().c_str(), result.documents, result.resumed,
              static_cast<unsigned long long>(result.tokens));
  std::printf("  %.1f s: documents %.1f, layer weights %.1f, bases %.1f, costs of codecs %.1f\n",
              result.seconds + measured.seconds, result.documents_seconds, result.weights_seconds,
              result.bases_seconds, measured.seconds);
  if (!result.no_metric.empty()) std::printf("  no metric of errors: %s\n", result.no_metric.c_str());
  if (!report.at("weights").is_null()) {
    std::printf("  weights of layers over their mean: %s\n", WeightRanges(report.at("weights")).c_str());
  }
  std::printf("  MFLOP a token each way: %s\n", ProductsAt(report.at("mflop_token")).c_str());
  std::printf("  codecs with one thread of %s, and millionths of a nat that they cost:\n",
              measured.processor.c_str());
  for (const kvt_profile_rung_t& rung : measured.rungs) {
    const std::string name = rung.codec + (rung.ratio == 0 ? "" : "@" + std::to_string(rung.ratio));
    std::printf("    %-12s encodes %5.0f MB/s, decodes %5.0f MB/s, ratio %5.2f, %6u\n", name.c_str(),
                rung.cost.encode_rate / 1e6, rung.cost.decode_rate / 1e6, rung.cost.ratio,
                rung.cost.quality_class);
  }
  std::printf("  %.2f MB, fingerprint %s\n", static_cast<double>(result.profile.size()) / 1e6,
              report.at("fingerprint").get<std::string>().c_str());
  if (result.nonfinite != 0) {
    std::printf("  %llu values were NaN or infinite\n", static_cast<unsigned long long>(result.nonfinite));
  }
}

}  // namespace

std::vector<std::string> DefaultTexts(const std::string& deps) {
  std::vector<std::string> texts = FilesIn(deps + "/texts/calibration");
  if (texts.empty()) {
    throw Failure("no texts to calibrate with: " + deps +
                  "/texts/calibration has none; ./bootstrap deps collects them, or name text files");
  }
  return texts;
}

int RunCalibrate(const CalibrateCommand& command) {
  ProgressLine progress;
  const std::unique_ptr<engine::Engine> engine = Take(engine::Engine::Open(command.model), "--model");
  const Model model = MakeModel(engine->geometry());
  CalibrationSettings settings = command.settings;
  if (settings.texts.empty()) settings.texts = DefaultTexts(command.deps);
  const CalibrationPlan plan = PlanCalibration(*engine, model, settings);
  const std::string path =
      command.out.empty() ? ProfileFolder(command.deps) + "/" + plan.FileName(model) : command.out;
  const std::string state = command.state.empty() ? path + ".state" : command.state;
  CheckWritable(path);
  const ShowProgress show = [&](const std::string& text) { progress.Show(text); };
  CalibrationResult result = Calibrate(*engine, model, plan, state, show);
  const MeasuredRungs measured = MeasureOn(*engine, model, plan, result.profile, show);
  result.profile = ProfileWithRungs(result.profile, measured.rungs, measured.processor);
  WriteFile(path, {result.profile});
  std::error_code code;
  std::filesystem::remove(state, code);
  progress.Clear();
  const Json report = Report(command, plan, result, measured, path);
  if (!command.json.empty()) WriteFile(command.json, report.dump(2) + "\n");
  Print(result, measured, report);
  return 0;
}

}  // namespace kvt::cli
