// What one measurement of `kvartet quality` finds out, and its form in a state file. Threads: values.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_SAMPLE_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kvartet/channel.h"
#include "kvartet/quality_metrics.h"

namespace kvt::cli {

// A method on one context.
struct MethodSample {
  double kl = 0;           // mean over the scored tokens
  double same_choice = 0;  // share of tokens whose first choice is the full cache's
  double likelihood = 0;   // sum of negative log-likelihoods of the tokens that follow
  Sizes sizes;
  double encode_us = 0;  // of one thread's processor time for the whole context, the fastest of several
  double decode_us = 0;
  int32_t equal_prefix = -1;  // tokens of greedy output that are the full cache's; -1: not measured
};

// A context of a document.
struct DocumentSample {
  std::string name;
  bool copy = false;
  int32_t context = 0;
  double full_likelihood = 0;
  double importance_us = 0;           // of one thread's processor time; 0: no method wanted it
  std::vector<MethodSample> methods;  // in the order of the run's
};

Json SampleToJson(const DocumentSample& sample);
// Throws nlohmann's exceptions when a field is missing or of another type.
DocumentSample SampleFromJson(const Json& json);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_SAMPLE_H_
