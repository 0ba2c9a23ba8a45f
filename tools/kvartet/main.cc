// The kvartet command.
#include <kvartet/kvartet.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "kvartet/calibrate_command.h"
#include "kvartet/decode_role.h"
#include "kvartet/demo.h"
#include "kvartet/library.h"
#include "kvartet/prefill_role.h"
#include "kvartet/process.h"
#include "kvartet/quality_options.h"
#include "kvartet/selection_options.h"
#include "kvartet/settings.h"

namespace {

CLI::App* AddCalibrate(CLI::App* app, kvt::cli::CalibrateCommand* command) {
  kvt::cli::CalibrationSettings* settings = &command->settings;
  CLI::App* calibrate =
      app->add_subcommand("calibrate", "Make a profile for the transform codec from texts, once for a model");
  calibrate->add_option("texts", settings->texts,
                        "UTF-8 text files, gzip'd or not, of all kinds that will be cached; default: those "
                        "that ./bootstrap deps collects");
  calibrate->add_option("--model", command->model, "GGUF file with attention-only KV")->capture_default_str();
  calibrate->add_option("--out", command->out, "the profile's file; default: where `kvartet demo` looks");
  calibrate->add_option("--tokens", settings->tokens, "tokens to take of the texts")
      ->check(CLI::Range(128, 100'000'000))
      ->capture_default_str();
  calibrate
      ->add_option("--document-tokens", settings->document_tokens,
                   "tokens of a document; default: tokens / texts, but 1,000 to 2,000")
      ->check(CLI::Range(64, 1'000'000));
  calibrate
      ->add_option("--jobs", settings->jobs,
                   "documents computed at the same time, each by one thread; default: one a core, at most 8")
      ->check(CLI::Range(1, 256));
  calibrate->add_option("--ratio-min", settings->ratio_min, "lowest ratio that the profile is for")
      ->check(CLI::Range(4, 32))
      ->capture_default_str();
  calibrate->add_option("--group-layers", settings->group_layers,
                        "layers that share a basis; default: a third of the layers, rounded up");
  calibrate->add_flag("!--no-metric", settings->metric,
                      "count all errors alike, instead of learning from queries and weights what they cost");
  calibrate->add_flag("!--no-weights", settings->weights,
                      "count all layers alike, instead of measuring what errors in them do to the output");
  calibrate->add_option("--resume", command->state,
                        "file that keeps what has entered, and from which an interrupted run goes on; "
                        "default: the profile's path and .state");
  calibrate->add_option("--json", command->json, "write the report as JSON to this file");
  return calibrate;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Kvartet: the KV cache of LLM serving, moved, shrunk, kept and verified."};
  app.set_version_flag("--version", std::string("kvartet ") + kvt_version_string());
  app.require_subcommand(1);

  kvt::cli::Settings settings;
  settings.model = KVARTET_DEFAULT_MODEL;
  settings.prompt = KVARTET_DEFAULT_PROMPT;
  CLI::App* demo = app.add_subcommand("demo",
                                      "Prefill on one process, decode on another: five ways, what each "
                                      "costs, and whether the output is the same");
  demo->add_option("--model", settings.model, "GGUF file with attention-only KV")->capture_default_str();
  demo->add_option("--prompt", settings.prompt, "the document of the prompt, a text file")
      ->capture_default_str();
  demo->add_option("--question", settings.question, "what to ask of the document");
  demo->add_option("--tokens", settings.tokens, "tokens to generate, greedily; end tokens do not stop it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  demo->add_option(
          "--codec", settings.codec,
          "codec of the lossy ways: transform, int8, fp8, kivi8, kivi4, kivi2, rotated4 and others, or raw")
      ->check([](const std::string& name) {
        if (name == "nested_rest") return std::string("nested_rest only completes what nested_coarse began");
        return name == "transform" ? std::string() : kvt::cli::CodecError(name);
      })
      ->capture_default_str();
  demo->add_option("--ratio", settings.ratio, "ratio of the transform codec")
      ->check(CLI::Range(4, 32))
      ->capture_default_str();
  demo->add_option("--profile", settings.profile,
                   "profile of the transform codec; default: one that the first run makes and keeps");
  demo->add_option("--calibration-tokens", settings.calibration_tokens,
                   "tokens of which that profile is made")
      ->check(CLI::Range(128, 100'000'000))
      ->capture_default_str();
  demo->add_option("--bandwidth", settings.bandwidth,
                   "limit of P's link, for example 50Mbit or 1Gbit; default: none");
  demo->add_option("--threads", settings.threads,
                   "engine threads of each process; more than one may cost the fidelity level")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  demo->add_option("--draft", settings.draft, "tokens drafted before a verification")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  demo->add_option("--sinks", settings.sinks, "first tokens that the lossy codec keeps raw")
      ->capture_default_str();
  demo->add_option("--window", settings.window,
                   "last prompt tokens that the lossy codec keeps raw, at most 64")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  demo->add_option("--fault", settings.fault,
                   "kill or stop P in the middle of the raw transfer, to see D fall back")
      ->check(CLI::IsMember({"kill", "stop"}));
  demo->add_option("--json", settings.json, "write the report as JSON to this file");
  demo->add_option("--html", settings.html, "write the report as a page to this file");

  kvt::cli::CalibrateCommand calibration;
  calibration.model = settings.model;
  calibration.deps = KVARTET_DEPS;
  CLI::App* calibrate = AddCalibrate(&app, &calibration);

  kvt::cli::QualitySettings quality_settings;
  quality_settings.model = settings.model;
  quality_settings.deps = KVARTET_DEPS;
  CLI::App* quality = AddQuality(&app, &quality_settings);

  kvt::cli::SelectionSettings selection_settings;
  selection_settings.model = settings.model;
  selection_settings.deps = KVARTET_DEPS;
  CLI::App* select = AddSelection(&app, &selection_settings);

  std::string role;
  CLI::App* role_command =
      app.add_subcommand("role", "A process of the demo; not for use by hand")->group("");
  role_command->add_option("name", role)->required()->check(CLI::IsMember({"prefill", "decode"}));

  CLI11_PARSE(app, argc, argv);
  try {
    if (demo->parsed()) return kvt::cli::RunDemo(settings, KVARTET_DEPS);
    if (calibrate->parsed()) return kvt::cli::RunCalibrate(calibration);
    if (quality->parsed()) return kvt::cli::RunQuality(quality_settings);
    if (select->parsed()) return kvt::cli::RunSelection(selection_settings);
    kvt::cli::Channel channel(kvt::cli::kRoleFd);
    return role == "prefill" ? kvt::cli::RunPrefill(std::move(channel))
                             : kvt::cli::RunDecode(std::move(channel));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "\nkvartet: %s\n", failure.what());
    return 2;
  }
}
