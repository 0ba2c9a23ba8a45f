#include <algorithm>

#include "kvartet/html.h"
#include "kvartet/report.h"

namespace kvt::cli {
namespace {

constexpr const char* kColours[kParts.size()] = {"#b0b0b0", "#4e79a7", "#f28e2b",
                                                 "#e15759", "#76b7b2", "#59a14f"};

// Stacked bars of TTFT; one scale for all rows, one colour a part.
std::string Bars(const DemoReport& report) {
  constexpr int kRow = 34, kLabel = 230, kWidth = 620;
  double longest = 1e-9;
  for (const Row& row : report.rows) longest = std::max(longest, row.ttft_total_ms);
  const int height = kRow * static_cast<int>(report.rows.size());
  std::string svg = "<svg viewBox=\"0 0 " + std::to_string(kLabel + kWidth + 110) + " " +
                    std::to_string(height) + "\" role=\"img\" aria-label=\"time to first token by part\">\n";
  int y = 0;
  for (const Row& row : report.rows) {
    svg += "<text x=\"0\" y=\"" + std::to_string(y + 20) + "\">" + EscapeHtml(row.title) + "</text>\n";
    double x = kLabel;
    for (size_t i = 0; i < kParts.size(); ++i) {
      const double width = row.ttft_ms[i] / longest * kWidth;
      svg += "<rect x=\"" + Number(x, 2) + "\" y=\"" + std::to_string(y + 6) + "\" width=\"" +
             Number(width, 2) + "\" height=\"20\" fill=\"" + kColours[i] + "\"><title>" + kParts[i] + " " +
             Number(row.ttft_ms[i], 1) + " ms</title></rect>\n";
      x += width;
    }
    svg += "<text x=\"" + Number(x + 6, 1) + "\" y=\"" + std::to_string(y + 20) + "\">" +
           Number(row.ttft_total_ms, 0) + " ms</text>\n";
    y += kRow;
  }
  return svg + "</svg>\n";
}

std::string Table(const DemoReport& report) {
  std::string html = "<table><tr><th>way</th><th>TTFT ms</th>";
  for (const char* part : kParts) html += std::string("<th>") + part + "</th>";
  html += "<th>bytes moved</th><th>ratio</th><th>tokens/s</th><th>equal tokens</th></tr>\n";
  for (const Row& row : report.rows) {
    html += "<tr><td>" + EscapeHtml(row.title) + "</td><td>" + Number(row.ttft_total_ms, 1) + "</td>";
    for (const double ms : row.ttft_ms) html += "<td>" + Number(ms, 1) + "</td>";
    html += "<td>" + std::to_string(row.bytes_moved) + "</td><td>" +
            (row.ratio == 0 ? "-" : Number(row.ratio, 2)) + "</td><td>" + Number(row.tokens_per_s, 1) +
            "</td><td" + (row.must_be_equal && !row.Identical() ? " class=\"bad\"" : "") + ">" +
            std::to_string(row.equal_tokens) + "/" + std::to_string(row.tokens) + "</td></tr>\n";
    if (!row.note.empty()) html += "<tr><td colspan=\"12\">" + EscapeHtml(row.note) + "</td></tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace

std::string ToHtml(const DemoReport& report) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Kvartet "
      "demo</title>\n<style>body{font:15px/1.5 sans-serif;max-width:980px;margin:2em auto;padding:0 "
      "1em;color:#222}"
      "svg{width:100%}svg text{font:14px "
      "sans-serif}table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}th,td{border:"
      "1px solid #ccc;padding:4px 7px;text-align:right}"
      "td:first-child,th:first-child{text-align:left}.bad{background:#f8d0d0;font-weight:bold}.key "
      "span{display:inline-block;width:1em;height:1em;margin:0 .3em 0 "
      "1em;vertical-align:-2px}</style></head>\n"
      "<body><h1>Prefill, ship, decode, verify</h1>\n";
  html += "<p>" + EscapeHtml(report.model) + ": prompt of " + std::to_string(report.prompt_tokens) +
          " tokens, " + std::to_string(report.raw_bytes) + " bytes of raw KV; lossy codec " +
          EscapeHtml(report.codec) + "; link " +
          (report.bandwidth.empty() ? std::string("not limited") : EscapeHtml(report.bandwidth)) +
          ".</p>\n<h2>Time to first token, by part</h2>\n<p class=\"key\">";
  for (size_t i = 0; i < kParts.size(); ++i)
    html += std::string("<span style=\"background:") + kColours[i] + "\"></span>" + kParts[i];
  html += "</p>\n" + Bars(report) +
          "<p>Parts are exposed times: what another part hides is not counted, so they add up.</p>\n" +
          Table(report);
  if (!report.profile.empty()) {
    html += "<p>The lossy codec's profile " + EscapeHtml(report.profile) + ", " +
            std::to_string(report.profile_moved) + " bytes, was moved once in " +
            Number(report.profile_ms, 1) + " ms and is in no row. With it the lossy ratio is " +
            Number(report.AmortisedRatio(1), 2) + " over one request, " +
            Number(report.AmortisedRatio(100), 2) + " over 100.</p>\n";
  }
  html += "<h2>Verification</h2>\n<p>Acceptance " + Number(report.acceptance, 4) +
          ", mean accepted draft length " + Number(report.mean_accepted, 2) + ", fidelity level " +
          EscapeHtml(report.fidelity) + ", " + std::to_string(report.checksums) +
          " checksums verified.</p>\n<h2>Advice</h2>\n<p>" + EscapeHtml(report.advice) +
          "</p>\n</body></html>\n";
  return html;
}

}  // namespace kvt::cli
