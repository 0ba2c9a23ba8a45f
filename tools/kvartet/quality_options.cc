#include "kvartet/quality_options.h"

namespace kvt::cli {

namespace {

void AddInputs(CLI::App* quality, QualitySettings* settings) {
  quality->add_option("texts", settings->files,
                      "UTF-8 text files, gzip'd or not; default: those that ./bootstrap deps collects");
  quality
      ->add_option("--copy", settings->copy_files,
                   "a text file of which a copy probe is made: an early passage is asked for again; may be "
                   "given several times")
      ->allow_extra_args(false);
  quality->add_flag(
      "--full", settings->full,
      "the long list of texts, with copy probes, and more columns: how long greedy output stays "
      "equal, and memory");
  quality->add_option("--model", settings->model, "GGUF file with attention-only KV")->capture_default_str();
  quality
      ->add_option("--weights", settings->weights,
                   "f32: a copy of the weights in f32, which the first run writes; shipped: the file's own, "
                   "whose rounding hides small losses")
      ->check(CLI::IsMember({"f32", "shipped"}))
      ->capture_default_str();
  quality
      ->add_option(
          "--context,--context-lengths", settings->contexts,
          "first tokens of a text, whose KV is coded; several lengths are measured out of one prefill")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(64, 1'000'000))
      ->capture_default_str();
  quality->add_option("--continuation", settings->continuation, "tokens after them, which are scored")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  quality->add_option("--documents", settings->documents, "take only so many of the texts; default: all")
      ->check(CLI::Range(1, 1'000'000));
}

void AddMethods(CLI::App* quality, QualitySettings* settings) {
  quality
      ->add_option("--methods", settings->methods,
                   "codecs, each with its ratio if it has one, as transform@16; default: some of each kind")
      ->delimiter(',')
      ->allow_extra_args(false);
  quality->add_option("--against", settings->against, "the method to which differences are reported")
      ->capture_default_str();
  CLI::Option* profile = quality->add_option(
      "--profile", settings->profile,
      "profile of the codecs with a ratio, calibrated with the weights that are measured; default: one that "
      "the first run makes and keeps");
  quality
      ->add_option("--group-layers", settings->group_layers,
                   "layers that share a basis in the profile that is made; default: the library's")
      ->check(CLI::Range(1, 4096))
      ->excludes(profile);
  quality->add_option("--sinks", settings->sinks, "first tokens that are kept raw")->capture_default_str();
  quality->add_option("--window", settings->window, "last tokens of the context that are kept raw")
      ->capture_default_str();
}

}  // namespace

CLI::App* AddQuality(CLI::App* app, QualitySettings* settings) {
  CLI::App* quality = app->add_subcommand(
      "quality",
      "What codecs do to the model's output, on texts that no calibration saw, and what they cost");
  AddInputs(quality, settings);
  AddMethods(quality, settings);
  quality
      ->add_option("--repeat", settings->repeat,
                   "times to encode and decode; the fastest counts; default: 3, with --full 1")
      ->check(CLI::Range(1, 1000));
  quality
      ->add_option("--threads", settings->threads, "engine threads of each job; codecs are measured on one")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  quality
      ->add_option("--jobs", settings->jobs,
                   "documents measured at the same time; default: 1, with --full one a core, at most 8")
      ->check(CLI::Range(1, 64));
  quality->add_option("--state", settings->state,
                      "file for the results so far, from which an interrupted run goes on; default: beside "
                      "the profiles");
  quality->add_option("--json", settings->json, "write the report as JSON to this file");
  quality->add_option("--markdown", settings->markdown, "write the report as Markdown to this file");
  quality->add_option("--html", settings->html, "write the report as a page with curves to this file");
  return quality;
}

}  // namespace kvt::cli
