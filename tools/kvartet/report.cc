#include "kvartet/report.h"

#include <cmath>
#include <cstdio>
#include <numeric>

namespace kvt::cli {
namespace {

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Bytes(uint64_t bytes) {
  return bytes == 0 ? "-" : Format("%.2f MB", static_cast<double>(bytes) / 1e6);
}
std::string Ratio(double ratio) { return ratio == 0 ? "-" : Format("%.2f", ratio); }

constexpr std::array<uint64_t, 3> kRequests = {1, 10, 100};

std::string Afterwards(const DemoReport& report) {
  const Row *raw = report.Find("raw"), *lossy = report.Find("lossy");
  if (raw == nullptr || lossy == nullptr || raw->AfterPrefillMs() <= 0) return "";
  return "end of prefill to first token: raw " + Format("%.1f ms", raw->AfterPrefillMs()) + ", lossy " +
         Format("%.1f ms", lossy->AfterPrefillMs()) +
         Format(" (%.2f of raw)\n", lossy->AfterPrefillMs() / raw->AfterPrefillMs());
}

std::string ProfileLine(const DemoReport& report) {
  if (report.profile.empty()) return "";
  std::string out = "profile " + report.profile + ": " + Bytes(report.profile_moved) + " moved once in " +
                    Format("%.1f ms", report.profile_ms) + ", in no row; with it the lossy ratio is";
  for (const uint64_t requests : kRequests) {
    out += (requests == 1 ? " " : ", ") + Ratio(report.AmortisedRatio(requests)) + " over " +
           std::to_string(requests);
  }
  return out + " requests\n";
}

}  // namespace

double Row::PartsSum() const { return std::accumulate(ttft_ms.begin(), ttft_ms.end(), 0.0); }

bool Row::PartsAddUp() const { return std::abs(PartsSum() - ttft_total_ms) <= 0.01; }

std::vector<std::string> DemoReport::Defects() const {
  std::vector<std::string> defects;
  for (const Row& row : rows) {
    if (row.must_be_equal && !row.Identical()) {
      defects.push_back(row.title + ": " + std::to_string(row.equal_tokens) + " of " +
                        std::to_string(row.tokens) + " tokens equal the full cache's; all must");
    }
    if (!row.PartsAddUp())
      defects.push_back(row.title + ": the parts of TTFT sum to " + Format("%.3f", row.PartsSum()) +
                        " ms, the total is " + Format("%.3f", row.ttft_total_ms) + " ms");
  }
  return defects;
}

const Row* DemoReport::Find(const std::string& way) const {
  for (const Row& row : rows) {
    if (row.way == way) return &row;
  }
  return nullptr;
}

double DemoReport::AmortisedRatio(uint64_t requests) const {
  const Row* lossy = Find("lossy");
  if (lossy == nullptr || lossy->bytes_moved == 0) return 0;
  const double share = static_cast<double>(profile_moved) / static_cast<double>(requests);
  return static_cast<double>(raw_bytes) / (static_cast<double>(lossy->bytes_moved) + share);
}

std::string ToTable(const DemoReport& report) {
  std::string out;
  char line[512];
  std::snprintf(line, sizeof line, "%-32s %9s | %7s %8s %7s %8s %7s %11s | %10s %6s %6s %9s\n", "way",
                "TTFT ms", "queue", "prefill", "encode", "transfer", "decode", "first token", "moved",
                "ratio", "tok/s", "equal");
  out += line;
  for (const Row& row : report.rows) {
    std::snprintf(line, sizeof line,
                  "%-32s %9.1f | %7.1f %8.1f %7.1f %8.1f %7.1f %11.1f | %10s %6s %6.1f %5d/%d%s\n",
                  row.title.c_str(), row.ttft_total_ms, row.ttft_ms[0], row.ttft_ms[1], row.ttft_ms[2],
                  row.ttft_ms[3], row.ttft_ms[4], row.ttft_ms[5], Bytes(row.bytes_moved).c_str(),
                  Ratio(row.ratio).c_str(), row.tokens_per_s, row.equal_tokens, row.tokens,
                  row.must_be_equal && !row.Identical() ? "  MUST BE EQUAL" : "");
    out += line;
    if (!row.note.empty()) out += "    " + row.note + "\n";
  }
  out += "\nprompt " + std::to_string(report.prompt_tokens) + " tokens, " + Bytes(report.raw_bytes) +
         " of raw KV; lossy codec " + report.codec + "; link " +
         (report.bandwidth.empty() ? "not limited" : report.bandwidth) + "\n";
  std::snprintf(
      line, sizeof line,
      "acceptance %.4f, mean accepted draft length %.2f, fidelity level %s, checksums verified %llu\n",
      report.acceptance, report.mean_accepted, report.fidelity.c_str(),
      static_cast<unsigned long long>(report.checksums));
  out += line;
  out += Afterwards(report) + ProfileLine(report);
  out += "advice: " + report.advice + "\n";
  return out;
}

Json ToJson(const DemoReport& report) {
  Json rows = Json::array();
  for (const Row& row : report.rows) {
    Json ttft;
    for (size_t i = 0; i < kParts.size(); ++i) ttft[kParts[i]] = row.ttft_ms[i];
    ttft["total"] = row.ttft_total_ms;
    rows.push_back({{"way", row.way},
                    {"ttft_ms", ttft},
                    {"after_prefill_ms", row.AfterPrefillMs()},
                    {"bytes_moved", row.bytes_moved},
                    {"ratio", row.ratio},
                    {"tokens_per_s", row.tokens_per_s},
                    {"tokens", row.tokens},
                    {"equal_tokens", row.equal_tokens},
                    {"total_ms", row.total_ms},
                    {"note", row.note}});
  }
  Json amortised;
  for (const uint64_t requests : kRequests)
    amortised[std::to_string(requests)] = report.AmortisedRatio(requests);
  return {{"schema", 1},
          {"rows", rows},
          {"acceptance", report.acceptance},
          {"mean_accepted", report.mean_accepted},
          {"fidelity", report.fidelity},
          {"checksums", report.checksums},
          {"advice", report.advice},
          {"prompt_tokens", report.prompt_tokens},
          {"raw_bytes", report.raw_bytes},
          {"codec", report.codec},
          {"bandwidth", report.bandwidth},
          {"model", report.model},
          {"profile",
           {{"fingerprint", report.profile},
            {"bytes", report.profile_bytes},
            {"moved", report.profile_moved},
            {"ms", report.profile_ms},
            {"ratio_over_requests", amortised}}}};
}

}  // namespace kvt::cli
