#include "kvartet/quality_options.h"

namespace kvt::cli {

CLI::App* AddQuality(CLI::App* app, QualitySettings* settings) {
  CLI::App* quality = app->add_subcommand(
      "quality",
      "What codecs do to the model's output, on texts that no calibration saw, and what they cost");
  quality->add_option("texts", settings->files,
                      "UTF-8 text files, gzip'd or not; default: those that ./bootstrap deps collects");
  quality->add_option("--model", settings->model, "GGUF file with attention-only KV")->capture_default_str();
  quality->add_option(
      "--profile", settings->profile,
      "profile of the transform codec, calibrated with the weights that are measured; default: "
      "one that the first run makes and keeps");
  quality
      ->add_option("--methods", settings->methods,
                   "codecs, each with its ratio if it has one, as transform@16")
      ->delimiter(',')
      ->capture_default_str();
  quality->add_option("--against", settings->against, "the method to which differences are reported")
      ->capture_default_str();
  quality
      ->add_option("--weights", settings->weights,
                   "f32: a copy of the weights in f32, which the first run writes; shipped: the file's own, "
                   "whose rounding hides small losses")
      ->check(CLI::IsMember({"f32", "shipped"}))
      ->capture_default_str();
  quality->add_option("--context", settings->context, "first tokens of a text, whose KV is coded")
      ->check(CLI::Range(64, 1'000'000))
      ->capture_default_str();
  quality->add_option("--continuation", settings->continuation, "tokens after them, which are scored")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  quality->add_option("--documents", settings->documents, "take only so many of the texts; default: all")
      ->check(CLI::Range(1, 1'000'000));
  quality->add_option("--sinks", settings->sinks, "first tokens that are kept raw")->capture_default_str();
  quality->add_option("--window", settings->window, "last tokens of the context that are kept raw")
      ->capture_default_str();
  quality->add_option("--repeat", settings->repeat, "times to encode and decode; the fastest counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  quality->add_option("--threads", settings->threads, "engine threads; codecs are measured on one")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  quality->add_option("--json", settings->json, "write the report as JSON to this file");
  quality->add_option("--markdown", settings->markdown, "write the report as Markdown to this file");
  return quality;
}

}  // namespace kvt::cli
