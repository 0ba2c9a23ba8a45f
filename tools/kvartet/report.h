// What the demo found out, and how it is shown: a table, JSON, a page.
#ifndef KVARTET_TOOLS_KVARTET_REPORT_H_
#define KVARTET_TOOLS_KVARTET_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kvartet/channel.h"

namespace kvt::cli {

// Parts of TTFT in the order of the table.
inline constexpr std::array<const char*, 6> kParts = {"queue",    "prefill", "encode",
                                                      "transfer", "decode",  "first_token"};

struct Row {
  std::string way;    // as in the JSON
  std::string title;  // as in the table
  std::array<double, kParts.size()> ttft_ms{};
  double ttft_total_ms = 0;
  uint64_t bytes_moved = 0;
  double ratio = 0;  // raw KV bytes over bytes moved; 0: nothing moved
  double tokens_per_s = 0;
  int32_t tokens = 0, equal_tokens = 0;
  double total_ms = 0;
  bool must_be_equal = false;
  std::string note;  // for example why D fell back

  // From the end of the prefill to the first token: all parts that follow it.
  double AfterPrefillMs() const { return ttft_ms[2] + ttft_ms[3] + ttft_ms[4] + ttft_ms[5]; }

  double PartsSum() const;
  // Parts are exposed times: they add up to the total but for rounding.
  bool PartsAddUp() const;
  bool Identical() const { return equal_tokens == tokens; }
};

struct DemoReport {
  std::vector<Row> rows;
  double acceptance = 0, mean_accepted = 0;
  std::string fidelity = "N";
  uint64_t checksums = 0;
  std::string advice;
  int32_t prompt_tokens = 0;
  uint64_t raw_bytes = 0;
  std::string codec, bandwidth, model;
  // The profile of the lossy codec, which D fetched once from P; in no row.
  std::string profile;  // fingerprint; empty: the codec has none
  uint64_t profile_bytes = 0, profile_moved = 0;
  double profile_ms = 0;

  // Raw bytes over bytes moved by the lossy way when the profile's bytes are shared by so many requests.
  double AmortisedRatio(uint64_t requests) const;
  const Row* Find(const std::string& way) const;

  // Rows that must be identical are, and parts add up; otherwise what does not hold.
  std::vector<std::string> Defects() const;
};

std::string ToTable(const DemoReport& report);
Json ToJson(const DemoReport& report);
// One page without outside references.
std::string ToHtml(const DemoReport& report);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_REPORT_H_
