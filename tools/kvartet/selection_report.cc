#include "kvartet/selection_report.h"

#include <algorithm>
#include <cmath>

#include "kvartet/html.h"
#include "kvartet/quality_tables.h"

namespace kvt::cli {
namespace {

std::string Range(double mean, const std::optional<Interval>& interval, double least) {
  std::string text = Number(mean, 4);
  if (interval)
    text += " [" + Number(std::max(interval->low, least), 4) + ", " + Number(interval->high, 4) + "]";
  return text;
}

Json Pair(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {interval->low, interval->high};
}

double MeanRepeated(const SelectionReport& report) {
  std::vector<double> shares;
  for (const SelectionDocument& document : report.documents) shares.push_back(document.repeated);
  return Mean(shares);
}

std::string Conditions(const SelectionReport& report) {
  const SelectionSettings& settings = report.settings;
  std::string text = "Model " + report.model + ". " + std::to_string(report.documents.size()) +
                     " documents. After prefill: " + std::to_string(settings.context) +
                     " tokens or fewer are thinned once, then " + std::to_string(settings.tokens) +
                     " tokens of output follow.";
  if (settings.long_tokens > 0) {
    text += " Long generation: " + std::to_string(settings.long_tokens) +
            " tokens of output follow a prompt of " + std::to_string(settings.prompt) +
            " whose tokens all stay but the last, and are thinned every " + std::to_string(settings.every) +
            " tokens.";
    const auto found = std::count_if(report.documents.begin(), report.documents.end(),
                                     [](const SelectionDocument& document) { return document.thresholds; });
    text += " ThinKV told three kinds of thoughts apart in " + std::to_string(found) +
            " documents; in the others all are of one kind. Of the long output " +
            Number(100 * MeanRepeated(report), 0) + " % ends a run of 16 tokens that was put out before.";
  }
  return text +
         " Output is the full cache's greedy one, given to each method. KL in nats a token, with the 95 % "
         "interval over documents. One choice for all layers and heads, whose scores are summed. Cells: what "
         "the engine holds after the last thinning, and at most after the first. Times: processor time of "
         "one "
         "thread for each thinning.";
}

Table StageTable(const std::vector<SelectionSummary>& summaries, const std::string& stage) {
  Table table{stage,
              {"method", "budget %", "cells", "at most", "MiB kept", "% of the full cache's", "KL",
               "more KL than `recent`", "same first choice %", "equal prefix", "choose ms", "drop ms"},
              {}};
  for (const SelectionSummary& each : summaries) {
    if (each.stage != stage) continue;
    table.rows.push_back({"`" + each.method + "`", std::to_string(each.budget_percent), Number(each.cells, 0),
                          Number(each.most_cells, 0), Number(each.kept_bytes / (1 << 20), 1),
                          Number(each.share_percent, 1), Range(each.kl, each.kl_interval, 0),
                          Range(each.more_kl, each.more_kl_interval, -INFINITY), Number(each.same_percent, 1),
                          Number(each.equal_prefix, 1) + " of " + Number(each.outputs, 0),
                          Number(each.select_ms, 1), Number(each.drop_ms, 1)});
  }
  return table;
}

Json SampleToJson(const SelectionSample& sample) {
  return {{"stage", sample.stage},
          {"method", sample.method},
          {"budget_percent", sample.budget_percent},
          {"budget", sample.budget},
          {"cells", sample.cells},
          {"of", sample.of},
          {"most_cells", sample.most_cells},
          {"thinnings", sample.thinnings},
          {"outputs", sample.outputs},
          {"kl", sample.kl},
          {"same_percent", 100 * sample.same_choice},
          {"equal_prefix", sample.equal_prefix},
          {"select_ms", sample.select_ms},
          {"drop_ms", sample.drop_ms}};
}

Json SummaryToJson(const SelectionSummary& summary) {
  return {{"stage", summary.stage},
          {"method", summary.method},
          {"budget_percent", summary.budget_percent},
          {"cells", summary.cells},
          {"most_cells", summary.most_cells},
          {"kept_bytes", summary.kept_bytes},
          {"share_percent", summary.share_percent},
          {"kl", summary.kl},
          {"kl_95", Pair(summary.kl_interval)},
          {"more_kl", summary.more_kl},
          {"more_kl_95", Pair(summary.more_kl_interval)},
          {"same_percent", summary.same_percent},
          {"equal_prefix", summary.equal_prefix},
          {"outputs", summary.outputs},
          {"thinnings", summary.thinnings},
          {"select_ms", summary.select_ms},
          {"drop_ms", summary.drop_ms}};
}

}  // namespace

std::vector<SelectionSummary> Summarise(const SelectionReport& report) {
  std::vector<SelectionSummary> summaries;
  size_t base = 0;
  for (size_t i = 0; i < report.documents.front().samples.size(); ++i) {
    const SelectionSample& first = report.documents.front().samples[i];
    SelectionSummary sum;
    sum.stage = first.stage;
    sum.method = first.method;
    sum.budget_percent = first.budget_percent;
    while (report.documents.front().samples[base].stage != first.stage ||
           report.documents.front().samples[base].budget_percent != first.budget_percent)
      ++base;
    std::vector<double> divergences, differences;
    const double count = static_cast<double>(report.documents.size());
    double of = 0;
    for (const SelectionDocument& document : report.documents) {
      const SelectionSample& sample = document.samples[i];
      divergences.push_back(sample.kl);
      differences.push_back(sample.kl - document.samples[base].kl);
      of += sample.of / count;
      sum.cells += sample.cells / count;
      sum.most_cells += sample.most_cells / count;
      sum.same_percent += 100 * sample.same_choice / count;
      sum.equal_prefix += sample.equal_prefix / count;
      sum.outputs += sample.outputs / count;
      sum.thinnings += sample.thinnings / count;
      sum.select_ms += sample.select_ms / count;
      sum.drop_ms += sample.drop_ms / count;
    }
    sum.kl = Mean(divergences);
    sum.kl_interval = Interval95(divergences);
    sum.more_kl = Mean(differences);
    sum.more_kl_interval = Interval95(differences);
    sum.kept_bytes = sum.cells * static_cast<double>(report.token_bytes);
    sum.share_percent = 100 * sum.cells / of;
    summaries.push_back(std::move(sum));
  }
  return summaries;
}

std::string ToMarkdown(const SelectionReport& report) {
  const std::vector<SelectionSummary> summaries = Summarise(report);
  std::string out = Conditions(report) + "\n";
  for (const char* stage : {kPrefillStage, kLongStage}) {
    const Table table = StageTable(summaries, stage);
    if (!table.rows.empty()) out += "\n" + TableToMarkdown(table);
  }
  return out + "\n" + kSelectionWarning + "\n";
}

Json ToJson(const SelectionReport& report) {
  Json methods = Json::array(), documents = Json::array();
  for (const SelectionSummary& summary : Summarise(report)) methods.push_back(SummaryToJson(summary));
  for (const SelectionDocument& document : report.documents) {
    Json samples = Json::array();
    for (const SelectionSample& sample : document.samples) samples.push_back(SampleToJson(sample));
    documents.push_back({{"name", document.name},
                         {"thresholds", document.thresholds},
                         {"repeated", document.repeated},
                         {"samples", samples}});
  }
  const SelectionSettings& settings = report.settings;
  return {{"schema", 1},
          {"model", report.model},
          {"weights_sha256", report.weights_sha256},
          {"token_bytes", report.token_bytes},
          {"context", settings.context},
          {"prompt", settings.prompt},
          {"every", settings.every},
          {"sinks", settings.sinks},
          {"window", settings.window},
          {"methods", methods},
          {"documents", documents},
          {"warning", kSelectionWarning}};
}

}  // namespace kvt::cli
