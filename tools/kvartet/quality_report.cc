#include "kvartet/quality_report.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace kvt::cli {
namespace {

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Kl(double value) { return Format("%.4f", value); }

std::string Range(const std::optional<Interval>& interval, double least) {
  if (!interval) return "";
  return " [" + Kl(std::max(interval->low, least)) + ", " + Kl(interval->high) + "]";
}

Json Pair(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {interval->low, interval->high};
}

// The place of the method that differences are to: the one asked for, or the first.
size_t BasePlace(const QualityReport& report) {
  const auto found = std::find_if(report.methods.begin(), report.methods.end(),
                                  [&](const QualityMethod& m) { return m.label == report.settings.against; });
  return found == report.methods.end() ? 0 : static_cast<size_t>(found - report.methods.begin());
}

MethodSummary SummariseOne(const QualityReport& report, size_t place) {
  const QualitySettings& settings = report.settings;
  const size_t base = BasePlace(report);
  std::vector<double> kl, more;
  double full_likelihood = 0, likelihood = 0;
  Sizes sizes;
  MethodSummary summary;
  summary.label = report.methods[place].label;
  for (const DocumentSample& document : report.documents) {
    const MethodSample& sample = document.methods[place];
    kl.push_back(sample.kl);
    more.push_back(sample.kl - document.methods[base].kl);
    full_likelihood += document.full_likelihood;
    likelihood += sample.likelihood;
    sizes += sample.sizes;
    summary.same_percent += 100 * sample.same_choice;
    const auto faster = [](double so_far, double now) { return so_far == 0 ? now : std::min(so_far, now); };
    summary.encode_us = faster(summary.encode_us, sample.encode_us / settings.context);
    summary.decode_us = faster(summary.decode_us, sample.decode_us / settings.context);
  }
  const size_t count = report.documents.size();
  const uint64_t profile_bytes = report.methods[place].NeedsProfile() ? report.profile_bytes : 0;
  const double token_bytes = static_cast<double>(sizes.raw) / static_cast<double>(count) / settings.context;
  summary.kl = Mean(kl);
  summary.kl_interval = Interval95(kl);
  summary.more_kl = Mean(more);
  summary.more_kl_interval = Interval95(more);
  summary.same_percent /= static_cast<double>(count);
  summary.perplexity_percent = PerplexityChangePercent(
      full_likelihood, likelihood, count * static_cast<size_t>(settings.continuation - 1));
  summary.whole_ratio = WholeRatio(sizes);
  summary.coded_ratio = CodedRatio(sizes);
  for (const double contexts : kContexts)
    summary.amortised.push_back(AmortisedRatio(sizes, count, profile_bytes, contexts));
  summary.encode_gbs = token_bytes / summary.encode_us / 1e3;
  summary.decode_gbs = token_bytes / summary.decode_us / 1e3;
  return summary;
}

std::string Conditions(const QualityReport& report) {
  const QualitySettings& settings = report.settings;
  std::string text = "Model " + report.model + "; weights: " + report.weights + ". " +
                     std::to_string(report.documents.size()) + " documents of " +
                     std::to_string(settings.context) + " tokens, of which the first " +
                     std::to_string(settings.sinks) + " and the last " + std::to_string(settings.window) +
                     " are exempt; the next " + std::to_string(settings.continuation) +
                     " tokens are scored. KL in nats a token, with the 95 % interval over documents.";
  if (!report.profile.empty()) {
    text += " Profile " + report.profile + ", " + std::to_string(report.profile_bytes) +
            " bytes, counted in the ratios of 1, 100 and 10,000 contexts.";
  }
  return text + " Times: processor time of one thread, the fastest of " + std::to_string(settings.repeat) +
         " and of all documents.\n";
}

}  // namespace

std::vector<MethodSummary> Summarise(const QualityReport& report) {
  std::vector<MethodSummary> summaries;
  for (size_t i = 0; i < report.methods.size(); ++i) summaries.push_back(SummariseOne(report, i));
  return summaries;
}

std::string ToMarkdown(const QualityReport& report) {
  const std::string base = report.methods[BasePlace(report)].label;
  std::string out =
      Conditions(report) + "\n| method | whole | coded | 1 / 100 / 10,000 contexts | KL | more KL than " +
      base + " | same first choice % | perplexity % | encode us/token (GB/s) | decode us/token (GB/s) |\n";
  out += "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const MethodSummary& method : Summarise(report)) {
    std::string amortised;
    for (const double ratio : method.amortised)
      amortised += (amortised.empty() ? "" : " / ") + Format("%.2f", ratio);
    out += "| `" + method.label + "` | " + Format("%.2f", method.whole_ratio) + " | " +
           Format("%.2f", method.coded_ratio) + " | " + amortised + " | " + Kl(method.kl) +
           Range(method.kl_interval, 0) + " | " + Format("%+.4f", method.more_kl) +
           Range(method.more_kl_interval, -1e9) + " | " + Format("%.1f", method.same_percent) + " | " +
           Format("%+.2f", method.perplexity_percent) + " | " + Format("%.1f", method.encode_us) + " (" +
           Format("%.2f", method.encode_gbs) + ") | " + Format("%.1f", method.decode_us) + " (" +
           Format("%.2f", method.decode_gbs) + ") |\n";
  }
  out += "\n| KL of document |";
  for (const QualityMethod& method : report.methods) out += " `" + method.label + "` |";
  out += "\n|---|";
  for (size_t i = 0; i < report.methods.size(); ++i) out += "---|";
  for (const DocumentSample& document : report.documents) {
    out += "\n| " + document.name + " |";
    for (const MethodSample& sample : document.methods) out += " " + Kl(sample.kl) + " |";
  }
  return out + "\n";
}

Json ToJson(const QualityReport& report) {
  Json methods = Json::array();
  for (const MethodSummary& method : Summarise(report)) {
    Json amortised;
    for (size_t i = 0; i < std::size(kContexts); ++i)
      amortised[Format("%.0f", kContexts[i])] = method.amortised[i];
    methods.push_back({{"method", method.label},
                       {"kl", method.kl},
                       {"kl_95", Pair(method.kl_interval)},
                       {"more_kl", method.more_kl},
                       {"more_kl_95", Pair(method.more_kl_interval)},
                       {"same_percent", method.same_percent},
                       {"perplexity_percent", method.perplexity_percent},
                       {"whole_ratio", method.whole_ratio},
                       {"coded_ratio", method.coded_ratio},
                       {"amortised_ratio", amortised},
                       {"encode_us_token", method.encode_us},
                       {"decode_us_token", method.decode_us},
                       {"encode_gb_s", method.encode_gbs},
                       {"decode_gb_s", method.decode_gbs}});
  }
  Json documents = Json::array();
  for (const DocumentSample& document : report.documents) {
    Json samples = Json::array();
    for (size_t i = 0; i < document.methods.size(); ++i) {
      const MethodSample& sample = document.methods[i];
      samples.push_back({{"method", report.methods[i].label},
                         {"kl", sample.kl},
                         {"same_percent", 100 * sample.same_choice},
                         {"likelihood", sample.likelihood},
                         {"raw_bytes", sample.sizes.raw},
                         {"exempt_bytes", sample.sizes.exempt},
                         {"frame_bytes", sample.sizes.frame}});
    }
    documents.push_back(
        {{"name", document.name}, {"full_likelihood", document.full_likelihood}, {"methods", samples}});
  }
  const QualitySettings& settings = report.settings;
  return {{"schema", 1},
          {"model", report.model},
          {"weights", report.weights},
          {"weights_sha256", report.weights_sha256},
          {"profile", report.profile},
          {"profile_bytes", report.profile_bytes},
          {"context", settings.context},
          {"continuation", settings.continuation},
          {"exempt_first", settings.sinks},
          {"exempt_last", settings.window},
          {"more_kl_than", report.methods[BasePlace(report)].label},
          {"methods", methods},
          {"documents", documents}};
}

}  // namespace kvt::cli
