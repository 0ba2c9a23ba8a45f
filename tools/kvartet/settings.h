// What the user asked of the demo, and how it travels to the demo's processes.
#ifndef KVARTET_TOOLS_KVARTET_SETTINGS_H_
#define KVARTET_TOOLS_KVARTET_SETTINGS_H_

#include <cstdint>
#include <string>

#include "kvartet/channel.h"

namespace kvt::cli {

struct Settings {
  std::string model;
  std::string prompt;  // path of the document
  std::string question =
      "Which four questions does a KV cache pose, and why is a gain on one axis a cost on another? Explain "
      "with examples from the text.";
  std::string codec = "transform";  // of the lossy ways
  uint32_t ratio = 16;              // transform's
  std::string profile;              // transform's: a file; empty: made by calibration when it is not there
  int32_t calibration_tokens = 20'000;
  std::string bandwidth;  // as in a URL; empty: no limit
  int32_t tokens = 256;
  int32_t threads = 1;
  int32_t draft = 8;     // tokens drafted a round
  uint32_t sinks = 4;    // first tokens kept raw by the lossy codec
  uint32_t window = 16;  // last prompt tokens kept raw by the lossy codec: most of what is left to send after
                         // the prefill
  std::string fault;     // "", "kill" or "stop": what happens to P in the middle of the raw transfer
  std::string json, html;  // where reports go

  Json ToJson() const {
    return {{"model", model},         {"prompt", prompt}, {"question", question}, {"codec", codec},
            {"bandwidth", bandwidth}, {"tokens", tokens}, {"threads", threads},   {"draft", draft},
            {"sinks", sinks},         {"window", window}, {"ratio", ratio},       {"profile", profile}};
  }
  static Settings FromJson(const Json& json) {
    Settings s;
    json.at("model").get_to(s.model);
    json.at("prompt").get_to(s.prompt);
    json.at("question").get_to(s.question);
    json.at("codec").get_to(s.codec);
    json.at("bandwidth").get_to(s.bandwidth);
    json.at("tokens").get_to(s.tokens);
    json.at("threads").get_to(s.threads);
    json.at("draft").get_to(s.draft);
    json.at("sinks").get_to(s.sinks);
    json.at("window").get_to(s.window);
    json.at("ratio").get_to(s.ratio);
    json.at("profile").get_to(s.profile);
    return s;
  }
  bool NeedsProfile() const { return codec == "transform"; }
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_SETTINGS_H_
