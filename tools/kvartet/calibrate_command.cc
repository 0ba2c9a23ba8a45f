#include "kvartet/calibrate_command.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "kvartet/channel.h"
#include "kvartet/files.h"
#include "kvartet/profile.h"
#include "kvartet/progress_line.h"

namespace kvt::cli {
namespace {

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
          {"tokens", result.tokens},
          {"resumed_documents", result.resumed},
          {"nonfinite", result.nonfinite},
          {"seconds", result.seconds},
          {"documents", documents}};
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
  std::printf("%s\n  %u documents (%u of them resumed), %llu tokens, %.1f s\n  %.2f MB, fingerprint %s\n",
              path.c_str(), result.documents, result.resumed, static_cast<unsigned long long>(result.tokens),
              result.seconds, static_cast<double>(result.profile.size()) / 1e6,
              report.at("fingerprint").get<std::string>().c_str());
  if (result.nonfinite != 0) {
    std::printf("  %llu values were NaN or infinite\n", static_cast<unsigned long long>(result.nonfinite));
  }
  return 0;
}

}  // namespace kvt::cli
