#include "kvartet/quality_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kvt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MethodSample Sample(double kl, double likelihood, uint64_t frame) {
  MethodSample sample;
  sample.kl = kl;
  sample.same_choice = 0.75;
  sample.likelihood = likelihood;
  sample.sizes = {100'000, 20'000, frame};
  sample.encode_us = 2000;
  sample.decode_us = 1000;
  return sample;
}

// Two documents, three methods: the first is kivi4, the last has a profile.
QualityReport Example() {
  QualityReport report;
  report.contexts = {100};
  report.settings.continuation = 11;
  report.model = "tiny";
  report.profile = "c0ffee";
  report.profile_bytes = 30'000;
  report.mflop = {{"transform", {{"8", 25.5}, {"16", 12.25}}}};
  report.methods = {{"kivi4", "kivi4", 0}, {"raw", "raw", 0}, {"transform@16", "transform", 16}};
  report.documents = {
      {"one", false, 100, 20, 0, {Sample(0.5, 22, 40'000), Sample(0, 20, 100'500), Sample(0.7, 21, 25'000)}},
      {"two", false, 100, 30, 0, {Sample(0.1, 31, 40'000), Sample(0, 30, 100'500), Sample(0.3, 32, 25'000)}}};
  return report;
}

TEST(QualityReport, MeansOverDocuments) {
  const std::vector<MethodSummary> methods = Summarise(Example(), 100);
  ASSERT_EQ(methods.size(), 3u);
  EXPECT_DOUBLE_EQ(methods[0].kl, 0.3);
  EXPECT_DOUBLE_EQ(methods[0].same_percent, 75);
  // 3 nats more over 2 x 10 tokens.
  EXPECT_NEAR(methods[0].perplexity_percent, 100 * (std::exp(0.15) - 1), 1e-9);
  EXPECT_DOUBLE_EQ(methods[0].encode_us, 20);
  EXPECT_DOUBLE_EQ(methods[0].decode_gbs, 0.1);
}

TEST(QualityReport, DifferencesArePairedByDocument) {
  const std::vector<MethodSummary> methods = Summarise(Example(), 100);
  EXPECT_EQ(methods[0].more_kl, 0);
  EXPECT_NEAR(methods[2].more_kl, 0.2, 1e-12);
  ASSERT_TRUE(methods[2].more_kl_interval.has_value());
  EXPECT_NEAR(methods[2].more_kl_interval->low, 0.2, 1e-9);
  EXPECT_NEAR(methods[2].more_kl_interval->high, 0.2, 1e-9);
  EXPECT_GT(methods[2].kl_interval->high, 2);
}

TEST(QualityReport, RatiosCountTheProfileWhereThereIsOne) {
  const std::vector<MethodSummary> methods = Summarise(Example(), 100);
  EXPECT_DOUBLE_EQ(methods[0].whole_ratio, 2.5);
  EXPECT_DOUBLE_EQ(methods[0].coded_ratio, 4);
  EXPECT_DOUBLE_EQ(methods[0].amortised[0], 2.5);
  EXPECT_NEAR(methods[1].whole_ratio, 1, 0.01);
  EXPECT_DOUBLE_EQ(methods[2].coded_ratio, 16);
  EXPECT_DOUBLE_EQ(methods[2].amortised[0], 100.0 / 55);
  EXPECT_NEAR(methods[2].amortised[2], 4, 0.001);
}

TEST(QualityReport, MarkdownHasARowForEachMethodAndDocument) {
  const std::string text = ToMarkdown(Example());
  for (const char* part :
       {"| `raw` | 1.00 | 0.99 |", "more KL than kivi4", "| one | 0.5000 | 0.0000 | 0.7000 |", "| two |",
        "c0ffee, 30000 bytes", "| MFLOP/token |", "| - | 20.0 (", "| 12.2 | 20.0 ("}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(QualityReport, ProductsAreThoseOfTheMethodsRatio) {
  EXPECT_EQ(Summarise(Example(), 100)[2].mflop, 12.25);
  EXPECT_FALSE(Summarise(Example(), 100)[0].mflop.has_value());
  const Json json = ToJson(Example());
  EXPECT_EQ(json["methods"][2]["mflop_token"], 12.25);
  EXPECT_FALSE(json["methods"][0].contains("mflop_token"));
  QualityReport without = Example();
  without.mflop = nullptr;
  EXPECT_THAT(ToMarkdown(without), Not(HasSubstr("MFLOP")));
}

TEST(QualityReport, OneDocumentHasNoInterval) {
  QualityReport report = Example();
  report.documents.pop_back();
  EXPECT_FALSE(Summarise(report, 100)[0].kl_interval.has_value());
  EXPECT_THAT(ToMarkdown(report), Not(HasSubstr("0.5000 [")));
  EXPECT_TRUE(ToJson(report)["methods"][0]["kl_95"].is_null());
}

TEST(QualityReport, DifferencesAreToTheFirstMethodWhenTheOneAskedForIsNotMeasured) {
  QualityReport report = Example();
  report.settings.against = "int8";
  EXPECT_EQ(ToJson(report)["more_kl_than"], "kivi4");
}

TEST(QualityReport, JsonKeepsWhatTheTableRounds) {
  const Json json = ToJson(Example());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["methods"].size(), 3u);
  EXPECT_EQ(json["documents"][1]["methods"][2]["frame_bytes"], 25'000);
  EXPECT_EQ(json["documents"][1]["methods"][2]["kl"], 0.3);
  EXPECT_EQ(json["methods"][2]["amortised_ratio"]["1"], 100.0 / 55);
}

// The same with a copy probe, a second length and all columns.
QualityReport LongExample() {
  QualityReport report = Example();
  report.settings.full = true;
  report.contexts = {100, 200};
  report.documents.push_back(
      {"probe", true, 100, 5, 0, {Sample(2, 6, 40'000), Sample(0, 5, 100'500), Sample(4, 9, 25'000)}});
  report.documents.push_back({"one",
                              false,
                              200,
                              20,
                              0,
                              {Sample(0.25, 22, 40'000), Sample(0, 20, 100'500), Sample(0.5, 21, 25'000)}});
  for (DocumentSample& document : report.documents) {
    for (MethodSample& sample : document.methods) sample.equal_prefix = document.copy ? 3 : 7;
  }
  report.memory = {MethodMemory{1 << 20, 2 << 20, 3 << 20}, std::nullopt, std::nullopt};
  return report;
}

TEST(QualityReport, CopyProbesCountApart) {
  const std::vector<MethodSummary> methods = Summarise(LongExample(), 100);
  EXPECT_DOUBLE_EQ(methods[0].kl, 0.3);
  EXPECT_NEAR(methods[0].perplexity_percent, 100 * (std::exp(0.15) - 1), 1e-9);
  EXPECT_EQ(methods[0].texts, 2u);
  EXPECT_EQ(methods[0].copies, 1u);
  EXPECT_DOUBLE_EQ(methods[0].copy_kl, 2);
  EXPECT_FALSE(methods[0].copy_kl_interval.has_value());
  EXPECT_DOUBLE_EQ(methods[0].equal_prefix, 7);
  EXPECT_DOUBLE_EQ(methods[0].copy_equal_prefix, 3);
}

TEST(QualityReport, EachLengthHasItsDocuments) {
  const std::vector<MethodSummary> methods = Summarise(LongExample(), 200);
  EXPECT_DOUBLE_EQ(methods[0].kl, 0.25);
  EXPECT_EQ(methods[0].texts, 1u);
  EXPECT_EQ(methods[0].copies, 0u);
  EXPECT_DOUBLE_EQ(methods[0].encode_us, 10);
  EXPECT_TRUE(Summarise(LongExample(), 300).empty());
}

TEST(QualityReport, LinksThatAreSlowEnough) {
  // 0.05 and 0.1 GB/s one after another are 1/30 GB/s; three fifths of the bytes are saved.
  EXPECT_NEAR(Summarise(LongExample(), 100)[0].PaysBelowGbits(), 8 * 0.6 / 30, 1e-9);
}

TEST(QualityReport, LongMarkdown) {
  const std::string text = ToMarkdown(LongExample());
  for (const char* part :
       {"3 documents of 100 or 200 tokens", "1 of the documents are copy probes", "Methods at 100 tokens",
        "| 2.0000 | 75.0 | 7.0 / 3.0 | 1.0 / 2.0 / 3.0 |", "| unknown |", "Methods at 200 tokens",
        "| `kivi4` | KIVI, arXiv 2402.02750 |", "| probe | 2.0000 | 0.0000 | 4.0000 |", "| never |"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(QualityReport, LongJson) {
  const Json json = ToJson(LongExample());
  EXPECT_EQ(json["methods"].size(), 6u);
  EXPECT_EQ(json["methods"][0]["copy_kl"], 2);
  EXPECT_EQ(json["methods"][0]["memory_bytes"]["decode"], 3 << 20);
  EXPECT_TRUE(json["methods"][1]["memory_bytes"].is_null());
  EXPECT_EQ(json["methods"][3]["context"], 200);
  EXPECT_FALSE(json["methods"][3].contains("copy_kl"));
  EXPECT_EQ(json["documents"][2]["copy"], true);
  EXPECT_EQ(json["documents"][2]["methods"][0]["equal_prefix"], 3);
}

TEST(QualityReport, APageWithCurvesThatLoadsNothing) {
  QualityReport report = LongExample();
  report.documents[0].name = "a<b>&c";
  const std::string page = ToHtml(report);
  for (const char* part :
       {"<svg", "class=\"front\"", "KL of copy probes", "a&lt;b&gt;&amp;c", "transform@16"})
    EXPECT_THAT(page, HasSubstr(part));
  for (const char* part : {"http://", "https://", "<script", "src=", "nan", "inf"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
}

}  // namespace
}  // namespace kvt::cli
