// What `kvartet quality` reports, as a table, as Markdown and as JSON. Threads: any.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_REPORT_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvartet/channel.h"
#include "kvartet/quality.h"
#include "kvartet/quality_measure.h"

namespace kvt::cli {

struct QualityReport {
  QualitySettings settings;
  std::string model;    // as the engine words it
  std::string weights;  // what they are and where they come from
  std::string weights_sha256;
  std::string profile;  // fingerprint; empty: no method needed one
  uint64_t profile_bytes = 0;
  std::vector<QualityMethod> methods;
  std::vector<DocumentSample> documents;
};

// A method over all documents.
struct MethodSummary {
  std::string label;
  double kl = 0;
  std::optional<Interval> kl_interval;
  double more_kl = 0;  // than the method that differences are to, document by document
  std::optional<Interval> more_kl_interval;
  double same_percent = 0;
  double perplexity_percent = 0;  // more than the full cache's
  double whole_ratio = 0, coded_ratio = 0;
  std::vector<double> amortised;          // in the order of kContexts
  double encode_us = 0, decode_us = 0;    // a token, of the fastest document
  double encode_gbs = 0, decode_gbs = 0;  // raw bytes
};

inline constexpr double kContexts[] = {1, 100, 10'000};

std::vector<MethodSummary> Summarise(const QualityReport& report);

std::string ToMarkdown(const QualityReport& report);
Json ToJson(const QualityReport& report);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_REPORT_H_
