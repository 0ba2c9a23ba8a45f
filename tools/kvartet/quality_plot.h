// A chart of points on two logarithmic axes, as SVG. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_PLOT_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_PLOT_H_

#include <string>
#include <vector>

namespace kvt::cli {

struct PlotPoint {
  std::string label;
  std::string series;  // points of one series are joined and have one colour
  double x = 0, y = 0;
};

struct Plot {
  std::string title, x_name, y_name;
  double y_floor = 0;             // a point below it is drawn on it
  bool higher_is_better = false;  // of y; of x it always is
  std::vector<PlotPoint> points;
};

// The points that no other beats in both, by ascending x.
std::vector<PlotPoint> ParetoFront(const Plot& plot);

// Empty when there is no point. The front is drawn dashed.
std::string PlotToSvg(const Plot& plot);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_PLOT_H_
