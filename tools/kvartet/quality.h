// `kvartet quality`: what codecs do to the output of the real engine, and what they cost.
//
// For each document: prefill its first tokens, take the KV out, and for each method encode it, decode it, put
// it into a fresh sequence and give both the document's next tokens one after another. How far the logits of
// the two are apart is the quality of the method.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kvt::cli {

struct QualitySettings {
  std::string model;
  std::string deps;  // the folder of downloads and of what is made once
  // The long list: copy probes among it; also measures how long greedy output stays equal, and memory.
  bool full = false;
  std::vector<std::string> files;       // empty: the texts of a list of scripts/texts
  std::vector<std::string> copy_files;  // copy probes are made of them
  std::string profile;        // path; empty: the one for these weights, which is calibrated once and kept
  uint32_t group_layers = 0;  // of the profile that is made; 0: the library's default
  std::vector<std::string> methods;        // empty: as DefaultMethods
  std::string against = "kivi4";           // the method that paired differences are to
  std::string weights = "f32";             // or "shipped"
  std::vector<int32_t> contexts = {1536};  // lengths in tokens
  int32_t continuation = 96;
  int32_t documents = 0;  // the first so many; 0: all
  int32_t repeat = 0;     // the fastest counts; 0: 3, or 1 with `full`
  int32_t threads = 1;    // of the engine, for each job; codecs run on one
  int32_t jobs = 0;       // documents at the same time; 0: 1, or with `full` one a core, at most 8
  uint32_t sinks = 4;
  uint32_t window = 128;
  std::string state;  // what is done so far, for a run that is interrupted; empty: beside the profiles
  std::string json, markdown, html;
};

std::vector<std::string> DefaultMethods(bool full);

// Returns the exit status. Throws Failure.
int RunQuality(const QualitySettings& settings);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_H_
