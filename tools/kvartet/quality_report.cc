#include "kvartet/quality_report.h"

#include <iterator>

#include "kvartet/quality_tables.h"

namespace kvt::cli {
namespace {

Json Pair(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {interval->low, interval->high};
}

Json Memory(const std::optional<MethodMemory>& memory) {
  if (!memory) return nullptr;
  return {{"codec", memory->codec}, {"encode", memory->encode}, {"decode", memory->decode}};
}

Json MethodToJson(const QualityReport& report, const MethodSummary& method) {
  Json amortised;
  for (size_t i = 0; i < std::size(kContexts); ++i)
    amortised[std::to_string(static_cast<int64_t>(kContexts[i]))] = method.amortised[i];
  Json json = {{"method", method.label}, {"context", method.context}, {"texts", method.texts}};
  if (method.texts != 0) {
    json.update({{"kl", method.kl},
                 {"kl_95", Pair(method.kl_interval)},
                 {"more_kl", method.more_kl},
                 {"more_kl_95", Pair(method.more_kl_interval)},
                 {"same_percent", method.same_percent},
                 {"perplexity_percent", method.perplexity_percent}});
  }
  json["copies"] = method.copies;
  if (method.copies != 0) {
    json.update({{"copy_kl", method.copy_kl},
                 {"copy_kl_95", Pair(method.copy_kl_interval)},
                 {"copy_same_percent", method.copy_same_percent}});
  }
  if (report.settings.full) {
    if (method.texts != 0) json["equal_prefix"] = method.equal_prefix;
    if (method.copies != 0) json["copy_equal_prefix"] = method.copy_equal_prefix;
    json["memory_bytes"] = Memory(method.memory);
  }
  const std::string paper = PublishedAs(method.codec);
  if (!paper.empty()) json["published"] = paper;
  if (method.mflop) json["mflop_token"] = *method.mflop;
  json.update({{"whole_ratio", method.whole_ratio},
               {"coded_ratio", method.coded_ratio},
               {"amortised_ratio", amortised},
               {"encode_us_token", method.encode_us},
               {"decode_us_token", method.decode_us},
               {"encode_gb_s", method.encode_gbs},
               {"decode_gb_s", method.decode_gbs},
               {"pays_below_gbit_s", method.PaysBelowGbits()}});
  return json;
}

Json DocumentToJson(const QualityReport& report, const DocumentSample& document) {
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
    if (sample.equal_prefix >= 0) samples.back()["equal_prefix"] = sample.equal_prefix;
  }
  return {{"name", document.name},
          {"copy", document.copy},
          {"context", document.context},
          {"full_likelihood", document.full_likelihood},
          {"importance_us", document.importance_us},
          {"methods", samples}};
}

}  // namespace

std::string ToMarkdown(const QualityReport& report) {
  std::string out = Conditions(report) + "\n";
  for (const Table& table : QualityTables(report)) out += "\n" + TableToMarkdown(table);
  return out;
}

Json ToJson(const QualityReport& report) {
  Json methods = Json::array(), documents = Json::array();
  for (const int32_t context : report.contexts) {
    for (const MethodSummary& method : Summarise(report, context))
      methods.push_back(MethodToJson(report, method));
  }
  for (const DocumentSample& document : report.documents)
    documents.push_back(DocumentToJson(report, document));
  const QualitySettings& settings = report.settings;
  return {{"schema", 1},
          {"model", report.model},
          {"weights", report.weights},
          {"weights_sha256", report.weights_sha256},
          {"profile", report.profile},
          {"profile_bytes", report.profile_bytes},
          {"contexts", report.contexts},
          {"continuation", settings.continuation},
          {"exempt_first", settings.sinks},
          {"exempt_last", settings.window},
          {"more_kl_than", report.methods[BasePlace(report)].label},
          {"methods", methods},
          {"documents", documents}};
}

}  // namespace kvt::cli
