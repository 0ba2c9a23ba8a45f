#include "kvartet/quality_summary.h"

#include <algorithm>

namespace kvt::cli {
namespace {

// Means of one method over some of the documents.
class Means {
 public:
  Means(size_t place, size_t base) : place_(place), base_(base) {}

  void Add(const DocumentSample& document) {
    const MethodSample& sample = document.methods[place_];
    kl_.push_back(sample.kl);
    more_.push_back(sample.kl - document.methods[base_].kl);
    same_.push_back(100 * sample.same_choice);
    prefix_.push_back(sample.equal_prefix);
    full_likelihood_ += document.full_likelihood;
    likelihood_ += sample.likelihood;
  }

  size_t count() const { return kl_.size(); }
  const std::vector<double>& kl() const { return kl_; }
  const std::vector<double>& more() const { return more_; }
  double same() const { return Mean(same_); }
  double prefix() const { return Mean(prefix_); }
  double PerplexityPercent(int32_t continuation) const {
    return PerplexityChangePercent(full_likelihood_, likelihood_,
                                   count() * static_cast<size_t>(continuation - 1));
  }

 private:
  const size_t place_, base_;
  std::vector<double> kl_, more_, same_, prefix_;
  double full_likelihood_ = 0, likelihood_ = 0;
};

MethodSummary SummariseOne(const QualityReport& report, int32_t context, size_t place) {
  const size_t base = BasePlace(report);
  const bool profile = report.methods[place].NeedsProfile();
  Means texts(place, base), copies(place, base);
  Sizes sizes;
  size_t count = 0;
  MethodSummary summary;
  summary.label = report.methods[place].label;
  summary.codec = report.methods[place].codec;
  summary.context = context;
  for (const DocumentSample& document : report.documents) {
    if (document.context != context) continue;
    (document.copy ? copies : texts).Add(document);
    const MethodSample& sample = document.methods[place];
    sizes += sample.sizes;
    ++count;
    const auto faster = [](double so_far, double now) { return so_far == 0 ? now : std::min(so_far, now); };
    summary.encode_us = faster(summary.encode_us, sample.encode_us / context);
    summary.decode_us = faster(summary.decode_us, sample.decode_us / context);
  }
  summary.texts = texts.count();
  summary.copies = copies.count();
  if (summary.texts != 0) {
    summary.kl = Mean(texts.kl());
    summary.kl_interval = Interval95(texts.kl());
    summary.more_kl = Mean(texts.more());
    summary.more_kl_interval = Interval95(texts.more());
    summary.same_percent = texts.same();
    summary.perplexity_percent = texts.PerplexityPercent(report.settings.continuation);
    summary.equal_prefix = texts.prefix();
  }
  if (summary.copies != 0) {
    summary.copy_kl = Mean(copies.kl());
    summary.copy_kl_interval = Interval95(copies.kl());
    summary.copy_same_percent = copies.same();
    summary.copy_equal_prefix = copies.prefix();
  }
  summary.whole_ratio = WholeRatio(sizes);
  summary.coded_ratio = CodedRatio(sizes);
  for (const double contexts : kContexts)
    summary.amortised.push_back(AmortisedRatio(sizes, count, profile ? report.profile_bytes : 0, contexts));
  const double token_bytes = static_cast<double>(sizes.raw) / static_cast<double>(count) / context;
  summary.encode_gbs = token_bytes / summary.encode_us / 1e3;
  summary.decode_gbs = token_bytes / summary.decode_us / 1e3;
  if (!report.memory.empty()) summary.memory = report.memory[place];
  const QualityMethod& method = report.methods[place];
  // The profile's figures are those of the trellis.
  if (report.mflop.contains(summary.codec) && method.quantiser != KVT_QUANTISER_SCALAR)
    summary.mflop = report.mflop.at(summary.codec).at(std::to_string(method.ratio)).get<double>();
  return summary;
}

}  // namespace

double MethodSummary::PaysBelowGbits() const {
  return 8 * (1 - 1 / whole_ratio) / (1 / encode_gbs + 1 / decode_gbs);
}

size_t BasePlace(const QualityReport& report) {
  const auto found = std::find_if(report.methods.begin(), report.methods.end(),
                                  [&](const QualityMethod& m) { return m.label == report.settings.against; });
  return found == report.methods.end() ? 0 : static_cast<size_t>(found - report.methods.begin());
}

std::vector<MethodSummary> Summarise(const QualityReport& report, int32_t context) {
  std::vector<MethodSummary> summaries;
  const auto has = [&](const DocumentSample& document) { return document.context == context; };
  if (std::none_of(report.documents.begin(), report.documents.end(), has)) return summaries;
  for (size_t i = 0; i < report.methods.size(); ++i) summaries.push_back(SummariseOne(report, context, i));
  return summaries;
}

bool HasCopies(const QualityReport& report) {
  return std::any_of(report.documents.begin(), report.documents.end(),
                     [](const DocumentSample& document) { return document.copy; });
}

}  // namespace kvt::cli
