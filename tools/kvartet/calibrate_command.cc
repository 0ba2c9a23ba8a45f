#include "kvartet/calibrate_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "kvartet/channel.h"
#include "kvartet/files.h"
#include "kvartet/profile.h"
#include "kvartet/progress_line.h"

namespace kvt::cli {
namespace {

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
            const std::string& path) {
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
          {"seconds", result.seconds},
          {"seconds_of",
           {{"documents", result.documents_seconds},
            {"weights", result.weights_seconds},
            {"bases", result.bases_seconds}}},
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

void Print(const CalibrationResult& result, const Json& report) {
  std::printf("%s\n  %u documents (%u of them resumed), %llu tokens\n",
              report.at("profile").get<std::string>().c_str(), result.documents, result.resumed,
              static_cast<unsigned long long>(result.tokens));
  std::printf("  %.1f s: documents %.1f, layer weights %.1f, bases %.1f\n", result.seconds,
              result.documents_seconds, result.weights_seconds, result.bases_seconds);
  if (!result.no_metric.empty()) std::printf("  no metric of errors: %s\n", result.no_metric.c_str());
  if (!report.at("weights").is_null()) {
    std::printf("  weights of layers over their mean: %s\n", WeightRanges(report.at("weights")).c_str());
  }
  std::printf("  MFLOP a token each way: %s\n", ProductsAt(report.at("mflop_token")).c_str());
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
  const CalibrationResult result =
      Calibrate(*engine, model, plan, state, [&](const std::string& text) { progress.Show(text); });
  WriteFile(path, {result.profile});
  std::error_code code;
  std::filesystem::remove(state, code);
  progress.Clear();
  const Json report = Report(command, plan, result, path);
  if (!command.json.empty()) WriteFile(command.json, report.dump(2) + "\n");
  Print(result, report);
  return 0;
}

}  // namespace kvt::cli
