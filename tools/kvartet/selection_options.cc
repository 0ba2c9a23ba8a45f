#include "kvartet/selection_options.h"

namespace kvt::cli {

CLI::App* AddSelection(CLI::App* app, SelectionSettings* settings) {
  CLI::App* select = app->add_subcommand(
      "select",
      "Which tokens keep their KV after a prefill and during a long generation, and what dropping the others "
      "does to the model's output");
  select->add_option("texts", settings->files,
                     "UTF-8 text files, gzip'd or not; default: those that ./bootstrap deps collects");
  select->add_option("--documents", settings->documents, "take only so many of the texts; default: all")
      ->check(CLI::Range(1, 1'000'000));
  select->add_option("--model", settings->model, "GGUF file with attention-only KV")->capture_default_str();
  select
      ->add_option("--budget", settings->budgets,
                   "tokens that stay, in percent of the context and of the long output; several are measured "
                   "one after another")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  select
      ->add_option(
          "--context", settings->context,
          "first tokens of a text, which are prefilled and then thinned; a shorter text is taken whole")
      ->check(CLI::Range(128, 1'000'000))
      ->capture_default_str();
  select->add_option("--tokens", settings->tokens, "tokens of output after them, which are compared")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  select
      ->add_option("--prompt", settings->prompt,
                   "first tokens of a text from which a long output is generated; all but the last stay")
      ->check(CLI::Range(64, 1'000'000))
      ->capture_default_str();
  select->add_option("--long", settings->long_tokens, "tokens of long output; 0: leave it out")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  select->add_option("--every", settings->every, "tokens of long output between one thinning and the next")
      ->check(CLI::Range(16, 4096))
      ->capture_default_str();
  select->add_option("--sinks", settings->sinks, "first tokens of the context that always stay")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  select
      ->add_option("--window", settings->window,
                   "last tokens that always stay, and whose queries judge the others")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  select->add_option("--threads", settings->threads, "engine threads; selection runs on one")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  select->add_option("--json", settings->json, "write the report as JSON to this file");
  return select;
}

}  // namespace kvt::cli
