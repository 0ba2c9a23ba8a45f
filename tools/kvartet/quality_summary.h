// What the samples of a run come to, method by method. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_SUMMARY_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvartet/channel.h"
#include "kvartet/quality.h"
#include "kvartet/quality_methods.h"
#include "kvartet/quality_metrics.h"
#include "kvartet/quality_sample.h"

namespace kvt::cli {

// Bytes that a method needs for one context beside rows and profile: what a codec keeps, and what it takes
// more while it encodes (its frame among that) and decodes.
struct MethodMemory {
  uint64_t codec = 0, encode = 0, decode = 0;
};

struct QualityReport {
  QualitySettings settings;
  std::string model;    // as the engine words it
  std::string weights;  // what they are and where they come from
  std::string weights_sha256;
  std::string profile;  // fingerprint; empty: no method needed one
  uint64_t profile_bytes = 0;
  std::vector<QualityMethod> methods;
  std::vector<int32_t> contexts;  // lengths, ascending
  std::vector<DocumentSample> documents;
  std::vector<std::optional<MethodMemory>> memory;  // in the order of the methods; empty: not measured
  Json mflop;  // of the profile's products, as ProfileMflop; null: no profile
};

inline constexpr double kContexts[] = {1, 100, 10'000};

// A method over all documents with a context of one length. Copy probes count in the copy fields only, and
// in sizes and times.
struct MethodSummary {
  std::string label, codec;
  int32_t context = 0;
  size_t texts = 0, copies = 0;
  double kl = 0;
  std::optional<Interval> kl_interval;
  double more_kl = 0;  // than the method that differences are to, document by document
  std::optional<Interval> more_kl_interval;
  double same_percent = 0;
  double perplexity_percent = 0;  // more than the full cache's
  double copy_kl = 0;
  std::optional<Interval> copy_kl_interval;
  double copy_same_percent = 0;
  double equal_prefix = 0;  // mean tokens of greedy output that are the full cache's, after texts
  double copy_equal_prefix = 0;
  double whole_ratio = 0, coded_ratio = 0;
  std::vector<double> amortised;          // in the order of kContexts
  double encode_us = 0, decode_us = 0;    // a token, of the fastest document
  double encode_gbs = 0, decode_gbs = 0;  // raw bytes
  std::optional<MethodMemory> memory;
  std::optional<double> mflop;  // of the products of one token each way

  // The link in Gbit/s below which coding, sending and decoding one after another on one core takes less time
  // than sending raw rows.
  double PaysBelowGbits() const;
};

// The place of the method that differences are to: the one asked for, or the first.
size_t BasePlace(const QualityReport& report);

// In the order of the methods. Of a length that no text has, an empty list.
std::vector<MethodSummary> Summarise(const QualityReport& report, int32_t context);

// Whether any document is a copy probe.
bool HasCopies(const QualityReport& report);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_SUMMARY_H_
