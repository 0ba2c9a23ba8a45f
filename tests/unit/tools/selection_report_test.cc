#include "kvartet/selection_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvt::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

SelectionSample Sample(const char* stage, const char* method, double kl, int32_t cells) {
  SelectionSample sample;
  sample.stage = stage;
  sample.method = method;
  sample.budget_percent = 25;
  sample.cells = cells;
  sample.of = 400;
  sample.most_cells = cells + 50;
  sample.thinnings = 1;
  sample.outputs = 50;
  sample.kl = kl;
  sample.same_choice = 0.5;
  sample.equal_prefix = 10;
  sample.select_ms = 3;
  return sample;
}

SelectionReport Example() {
  SelectionReport report;
  report.model = "tiny";
  report.token_bytes = 1 << 20;
  report.documents = {
      {"one", true, 0.25, {Sample(kPrefillStage, "recent", 0.5, 100), Sample(kLongStage, "thinkv", 0.2, 90)}},
      {"two",
       false,
       0.75,
       {Sample(kPrefillStage, "recent", 0.1, 100), Sample(kLongStage, "thinkv", 0.4, 110)}}};
  return report;
}

TEST(SelectionReport, MeansOverDocuments) {
  const std::vector<SelectionSummary> methods = Summarise(Example());
  ASSERT_EQ(methods.size(), 2u);
  EXPECT_EQ(methods[1].method, "thinkv");
  EXPECT_DOUBLE_EQ(methods[1].kl, 0.3);
  EXPECT_DOUBLE_EQ(methods[1].cells, 100);
  EXPECT_DOUBLE_EQ(methods[1].most_cells, 150);
  EXPECT_DOUBLE_EQ(methods[1].kept_bytes, 100.0 * (1 << 20));
  EXPECT_DOUBLE_EQ(methods[1].share_percent, 25);
  EXPECT_DOUBLE_EQ(methods[0].same_percent, 50);
  ASSERT_TRUE(methods[0].kl_interval.has_value());
}

TEST(SelectionReport, DifferencesAreToTheFirstMethodOfTheStageAndBudget) {
  SelectionReport report = Example();
  for (SelectionDocument& document : report.documents) {
    document.samples.push_back(Sample(kLongStage, "rkv", document.samples[1].kl + 0.1, 90));
    document.samples.push_back(Sample(kLongStage, "rkv", 0.7, 90));
    document.samples.back().budget_percent = 50;
  }
  const std::vector<SelectionSummary> methods = Summarise(report);
  EXPECT_EQ(methods[1].more_kl, 0);
  EXPECT_NEAR(methods[2].more_kl, 0.1, 1e-12);
  EXPECT_NEAR(methods[2].more_kl_interval->high, 0.1, 1e-9);
  EXPECT_EQ(methods[3].more_kl, 0);
}

TEST(SelectionReport, TablesSayWhatWasMeasuredAndWhereItFails) {
  const std::string text = ToMarkdown(Example());
  EXPECT_THAT(text, HasSubstr("### after prefill\n"));
  EXPECT_THAT(text, HasSubstr("| `thinkv` | 25 | 100 | 150 | 100.0 | 25.0 | 0.3000 [0.0000, 1.5706] | 0.0000 "
                              "[0.0000, 0.0000] | 50.0 | "
                              "10.0 of 50 | 3.0 | 0.0 |\n"));
  EXPECT_THAT(text, HasSubstr("three kinds of thoughts apart in 1 documents"));
  EXPECT_THAT(text, HasSubstr("Of the long output 50 %"));
  EXPECT_THAT(text, EndsWith(std::string(kSelectionWarning) + "\n"));
}

TEST(SelectionReport, AStageThatWasLeftOutHasNoTable) {
  SelectionReport report = Example();
  report.settings.long_tokens = 0;
  for (SelectionDocument& document : report.documents) document.samples.pop_back();
  const std::string text = ToMarkdown(report);
  EXPECT_THAT(text, Not(HasSubstr("thinkv")));
  EXPECT_THAT(text, Not(HasSubstr("ThinKV")));
  EXPECT_THAT(text, Not(HasSubstr(kLongStage)));
}

TEST(SelectionReport, JsonHasMethodsDocumentsAndTheWarning) {
  const Json json = ToJson(Example());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["methods"].size(), 2u);
  EXPECT_EQ(json["methods"][0]["kl_95"].size(), 2u);
  EXPECT_EQ(json["documents"][1]["samples"][1]["cells"], 110);
  EXPECT_EQ(json["documents"][0]["thresholds"], true);
  EXPECT_EQ(json["warning"], kSelectionWarning);
  SelectionReport one = Example();
  one.documents.pop_back();
  EXPECT_TRUE(ToJson(one)["methods"][0]["kl_95"].is_null());
}

}  // namespace
}  // namespace kvt::cli
