#include <algorithm>

#include "kvartet/html.h"
#include "kvartet/quality_plot.h"
#include "kvartet/quality_report.h"
#include "kvartet/quality_tables.h"

namespace kvt::cli {
namespace {

constexpr double kKlFloor = 1e-5;  // a KL of 0 has no place on a logarithmic axis

constexpr char kStyle[] =
    "body{font:15px/1.5 sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "svg{width:100%}svg text{font:13px sans-serif}"
    "table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto;margin:1em 0}"
    "th,td{border:1px solid #ccc;padding:4px 7px;text-align:right}"
    "td:first-child,th:first-child{text-align:left}";

struct Chart {
  const char* title;
  const char* x_name;
  const char* y_name;
  double (*x)(const MethodSummary&);
  double (*y)(const MethodSummary&);
  bool (*has)(const MethodSummary&);
  double y_floor;
  bool higher_is_better;
};

bool HasTexts(const MethodSummary& method) { return method.texts != 0; }
bool HasCopyProbes(const MethodSummary& method) { return method.copies != 0; }
bool Always(const MethodSummary&) { return true; }

double Coded(const MethodSummary& method) { return method.coded_ratio; }

constexpr Chart kCharts[] = {
    {"Loss against the ratio of coded tokens", "coded ratio", "KL, nats a token", Coded,
     [](const MethodSummary& m) { return m.kl; }, HasTexts, kKlFloor, false},
    {"Loss against the ratio of whole frames", "whole ratio", "KL, nats a token",
     [](const MethodSummary& m) { return m.whole_ratio; }, [](const MethodSummary& m) { return m.kl; },
     HasTexts, kKlFloor, false},
    {"Copying: loss against the ratio of coded tokens", "coded ratio", "KL of copy probes, nats a token",
     Coded, [](const MethodSummary& m) { return m.copy_kl; }, HasCopyProbes, kKlFloor, false},
    {"Speed of decoding against the ratio of coded tokens", "coded ratio",
     "decode, GB/s of raw rows, one core", Coded, [](const MethodSummary& m) { return m.decode_gbs; }, Always,
     0, true},
    {"Speed of encoding against the ratio of coded tokens", "coded ratio",
     "encode, GB/s of raw rows, one core", Coded, [](const MethodSummary& m) { return m.encode_gbs; }, Always,
     0, true},
};

// The label without its ratio: points of one series differ by that alone.
std::string Series(std::string label) {
  const size_t at = label.find('@');
  if (at != std::string::npos) label.erase(at, std::min(label.find(':', at), label.size()) - at);
  return label;
}

std::string Charts(const QualityReport& report, int32_t context) {
  std::string html;
  const std::vector<MethodSummary> methods = Summarise(report, context);
  for (const Chart& chart : kCharts) {
    Plot plot{chart.title, chart.x_name, chart.y_name, chart.y_floor, chart.higher_is_better, {}};
    for (const MethodSummary& method : methods) {
      if (chart.has(method))
        plot.points.push_back({method.label, Series(method.label), chart.x(method), chart.y(method)});
    }
    if (plot.points.empty()) continue;
    html += std::string("<h3>") + chart.title + ", contexts of " + std::to_string(context) +
            " tokens</h3>\n" + PlotToSvg(plot);
  }
  return html;
}

}  // namespace

std::string ToHtml(const QualityReport& report) {
  std::string html = std::string(
                         "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Kvartet "
                         "quality</title>\n<style>") +
                     kStyle + "</style></head>\n<body><h1>What codecs do to the output</h1>\n<p>" +
                     EscapeHtml(Conditions(report)) +
                     "</p>\n<p>Dashed: what no other method beats on both axes. A KL below " +
                     Number(kKlFloor, 5) + " is drawn there.</p>\n";
  for (const int32_t context : report.contexts) html += Charts(report, context);
  html += "<h2>Tables</h2>\n";
  for (const Table& table : QualityTables(report)) html += TableToHtml(table);
  return html + "</body></html>\n";
}

}  // namespace kvt::cli
