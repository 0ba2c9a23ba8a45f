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
  std::string deps;                // the folder of downloads and of what is made once
  std::vector<std::string> files;  // empty: the texts of scripts/texts/quality.txt
  std::string profile;  // path; empty: the one for these weights, which is calibrated once and kept
  std::vector<std::string> methods = {"int8", "kivi4", "kivi2", "transform@8", "transform@16"};
  std::string against = "kivi4";  // the method that paired differences are to
  std::string weights = "f32";    // or "shipped"
  int32_t context = 1536;
  int32_t continuation = 96;
  int32_t documents = 0;  // the first so many; 0: all
  int32_t repeat = 3;     // the fastest counts
  int32_t threads = 1;    // of the engine; codecs run on one
  uint32_t sinks = 4;
  uint32_t window = 128;
  std::string json, markdown;
};

// Returns the exit status. Throws Failure.
int RunQuality(const QualitySettings& settings);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_H_
