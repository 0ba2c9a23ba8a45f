// The kvartet command.
#include <kvartet/kvartet.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "kvartet/decode_role.h"
#include "kvartet/demo.h"
#include "kvartet/library.h"
#include "kvartet/prefill_role.h"
#include "kvartet/process.h"
#include "kvartet/settings.h"

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
  demo->add_option("--codec", settings.codec, "codec of the lossy ways: int8, kivi4, kivi2, or raw")
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

  std::string role;
  CLI::App* role_command =
      app.add_subcommand("role", "A process of the demo; not for use by hand")->group("");
  role_command->add_option("name", role)->required()->check(CLI::IsMember({"prefill", "decode"}));

  CLI11_PARSE(app, argc, argv);
  try {
    if (demo->parsed()) return kvt::cli::RunDemo(settings);
    kvt::cli::Channel channel(kvt::cli::kRoleFd);
    return role == "prefill" ? kvt::cli::RunPrefill(std::move(channel))
                             : kvt::cli::RunDecode(std::move(channel));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "\nkvartet: %s\n", failure.what());
    return 2;
  }
}
