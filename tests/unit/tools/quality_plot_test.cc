#include "kvartet/quality_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvt::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> FrontLabels(const Plot& plot) {
  std::vector<std::string> labels;
  for (const PlotPoint& point : ParetoFront(plot)) labels.push_back(point.label);
  return labels;
}

Plot Example() {
  Plot plot{"Loss", "ratio", "KL", 1e-5, false, {}};
  plot.points = {{"a@8", "a", 8, 0.01}, {"a@16", "a", 16, 0.1}, {"b", "b", 4, 0.02}, {"c", "c", 2, 0}};
  return plot;
}

TEST(QualityPlot, TheFrontIsWhatNothingBeats) {
  EXPECT_THAT(FrontLabels(Example()), ElementsAre("c", "a@8", "a@16"));
}

TEST(QualityPlot, TheFrontWhereMoreIsBetter) {
  Plot plot = Example();
  plot.higher_is_better = true;
  EXPECT_THAT(FrontLabels(plot), ElementsAre("a@16"));
}

TEST(QualityPlot, PointsThatAreEqualInOneGiveTheBetterOne) {
  Plot plot = Example();
  plot.points.push_back({"d", "d", 16, 0.05});
  plot.points.push_back({"e", "e", 12, 0.05});
  EXPECT_THAT(FrontLabels(plot), ElementsAre("c", "a@8", "d"));
}

TEST(QualityPlot, DrawsEveryPointAndJoinsSeries) {
  const std::string svg = PlotToSvg(Example());
  for (const char* part : {">a@8<", ">a@16<", ">b<", ">c<", "<title>c: 2, 1e-05</title>", "class=\"front\""})
    EXPECT_THAT(svg, HasSubstr(part));
  size_t lines = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1))
    ++lines;
  EXPECT_EQ(lines, 2u);  // the front and the series with two points
}

TEST(QualityPlot, OnePointIsInside) {
  Plot plot = Example();
  plot.points.resize(1);
  EXPECT_THAT(PlotToSvg(plot), Not(HasSubstr("nan")));
}

TEST(QualityPlot, NothingToDraw) { EXPECT_EQ(PlotToSvg({}), ""); }

}  // namespace
}  // namespace kvt::cli
