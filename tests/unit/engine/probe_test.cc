#include "engine/probe.h"

#include <gmock/gmock.h>

#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;

TEST(Probe, OneThreadWithFlashAttentionIsBitIdenticalAtEveryWidth) {
  const auto report = Probe(TestEngine());
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->findings.size(), 8u);
  for (const WidthFinding& f : report->findings) {
    SCOPED_TRACE(testing::Message() << "width " << f.width << " context " << f.context);
    EXPECT_TRUE(f.single_equal);
    EXPECT_EQ(f.single_max_diff, 0);
    EXPECT_EQ(f.argmax_mismatches, 0);
    EXPECT_TRUE(f.repeat_equal);
    EXPECT_TRUE(f.row_equal);
    EXPECT_EQ(f.row_max_diff, 0);
  }
  EXPECT_TRUE(report->AllSingleEqual() && report->AllRepeatEqual() && report->AllRowEqual());
  EXPECT_EQ(report->MaxSingleDiff(), 0);
  EXPECT_GT(report->min_gap, 0);
}

// The control: with two threads the engine splits a lone query over more than 512 cells, and a batch not.
TEST(Probe, TwoThreadsOverALongContextAreFoundOut) {
  const auto report = Probe(TestEngine(), {.session = {.threads = 2}, .widths = {2}, .contexts = {640}});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->AllSingleEqual());
  EXPECT_GT(report->MaxSingleDiff(), 0);
  EXPECT_TRUE(report->AllRepeatEqual());
}

TEST(Probe, RefusesWidthsAndContextsThatMakeNoSense) {
  EXPECT_THAT(Probe(TestEngine(), {.widths = {1}}).error().message, HasSubstr("width is 1"));
  EXPECT_THAT(Probe(TestEngine(), {.widths = {65}}).error().message, HasSubstr("width is 65"));
  EXPECT_THAT(Probe(TestEngine(), {.contexts = {0}}).error().message, HasSubstr("context is 0"));
  EXPECT_THAT(Probe(TestEngine(), {.widths = {}}).error().message, HasSubstr("needs a width"));
}

TEST(ProbeReport, OneDifferingWidthIsSeen) {
  ProbeReport report;
  report.findings = {
      {.single_equal = true, .repeat_equal = true, .row_equal = true},
      {.single_equal = false, .single_max_diff = 0.5f, .repeat_equal = true, .row_equal = false}};
  EXPECT_FALSE(report.AllSingleEqual());
  EXPECT_TRUE(report.AllRepeatEqual());
  EXPECT_FALSE(report.AllRowEqual());
  EXPECT_FLOAT_EQ(report.MaxSingleDiff(), 0.5f);
}

}  // namespace
}  // namespace kvt::engine
