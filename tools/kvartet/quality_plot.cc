#include "kvartet/quality_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "kvartet/html.h"

namespace kvt::cli {
namespace {

constexpr double kWidth = 900, kHeight = 440, kLeft = 78, kRight = 24, kTop = 18, kBottom = 52;
constexpr const char* kColours[] = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f",
                                    "#b07aa1", "#9c755f", "#5b5b5b", "#d37295", "#8a8a00"};

// A logarithmic axis from `low` to `high` over pixels [from, to].
struct Axis {
  double low, high, from, to;

  double At(double value) const { return from + (to - from) * std::log(value / low) / std::log(high / low); }
};

// Bounds a little outside the values, which are positive.
Axis AxisOver(std::vector<double> values, double from, double to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double room = std::max(0.06 * std::log(*most / *least), 0.1);
  return {*least * std::exp(-room), *most * std::exp(room), from, to};
}

// 1, 2 and 5 times powers of ten inside the axis; over more than three decades the powers alone.
std::vector<double> Ticks(const Axis& axis) {
  const bool sparse = axis.high / axis.low > 1000;
  std::vector<double> ticks;
  for (int power = static_cast<int>(std::floor(std::log10(axis.low))); std::pow(10, power) <= axis.high;
       ++power) {
    for (const int step : {1, 2, 5}) {
      const double tick = step * std::pow(10, power);
      if (tick >= axis.low && tick <= axis.high && (step == 1 || !sparse)) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return "<line x1=\"" + Number(x1, 1) + "\" y1=\"" + Number(y1, 1) + "\" x2=\"" + Number(x2, 1) +
         "\" y2=\"" + Number(y2, 1) + "\" " + style + "/>\n";
}

std::string Text(double x, double y, const std::string& text, const std::string& style) {
  return "<text x=\"" + Number(x, 1) + "\" y=\"" + Number(y, 1) + "\" " + style + ">" + EscapeHtml(text) +
         "</text>\n";
}

std::string Path(const std::vector<PlotPoint>& points, const Axis& x, const Axis& y,
                 const std::string& style) {
  std::string path = "<polyline fill=\"none\" points=\"";
  for (const PlotPoint& point : points)
    path += Number(x.At(point.x), 1) + "," + Number(y.At(point.y), 1) + " ";
  return path + "\" " + style + "/>\n";
}

std::string Grid(const Plot& plot, const Axis& x, const Axis& y) {
  constexpr char kThin[] = "stroke=\"#e4e4e4\"";
  std::string svg;
  for (const double tick : Ticks(x)) {
    svg += Line(x.At(tick), y.from, x.At(tick), y.to, kThin);
    svg += Text(x.At(tick), y.from + 18, Short(tick), "text-anchor=\"middle\"");
  }
  for (const double tick : Ticks(y)) {
    svg += Line(x.from, y.At(tick), x.to, y.At(tick), kThin);
    svg += Text(x.from - 8, y.At(tick) + 4, Short(tick), "text-anchor=\"end\"");
  }
  svg += Text((x.from + x.to) / 2, kHeight - 10, plot.x_name, "text-anchor=\"middle\"");
  const double middle = (y.from + y.to) / 2;
  return svg + Text(16, middle, plot.y_name,
                    "text-anchor=\"middle\" transform=\"rotate(-90 16 " + Number(middle, 1) + ")\"");
}

}  // namespace

std::vector<PlotPoint> ParetoFront(const Plot& plot) {
  std::vector<PlotPoint> points = plot.points;
  const auto better = [&](double a, double b) { return plot.higher_is_better ? a > b : a < b; };
  std::stable_sort(points.begin(), points.end(), [&](const PlotPoint& a, const PlotPoint& b) {
    return a.x != b.x ? a.x > b.x : better(a.y, b.y);
  });
  std::vector<PlotPoint> front;
  for (const PlotPoint& point : points) {
    if (front.empty() || better(point.y, front.back().y)) front.push_back(point);
  }
  std::reverse(front.begin(), front.end());
  return front;
}

std::string PlotToSvg(const Plot& given) {
  if (given.points.empty()) return "";
  Plot plot = given;
  std::vector<double> xs, ys;
  std::vector<std::string> series;
  for (PlotPoint& point : plot.points) {
    point.y = std::max(point.y, plot.y_floor);
    xs.push_back(point.x);
    ys.push_back(point.y);
    if (std::find(series.begin(), series.end(), point.series) == series.end()) series.push_back(point.series);
  }
  const Axis x = AxisOver(xs, kLeft, kWidth - kRight);
  const Axis y = AxisOver(ys, kHeight - kBottom, kTop);
  std::string svg = "<svg viewBox=\"0 0 " + Number(kWidth, 0) + " " + Number(kHeight, 0) +
                    "\" role=\"img\" aria-label=\"" + EscapeHtml(plot.title) + "\">\n" + Grid(plot, x, y);
  svg += Path(ParetoFront(plot), x, y,
              "class=\"front\" stroke=\"#999\" stroke-dasharray=\"6 5\" stroke-width=\"1.5\"");
  for (size_t i = 0; i < series.size(); ++i) {
    const std::string colour = kColours[i % std::size(kColours)];
    std::vector<PlotPoint> own;
    for (const PlotPoint& point : plot.points) {
      if (point.series == series[i]) own.push_back(point);
    }
    std::sort(own.begin(), own.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
    if (own.size() > 1) svg += Path(own, x, y, "stroke=\"" + colour + "\" stroke-width=\"2\"");
    for (const PlotPoint& point : own) {
      svg += "<circle cx=\"" + Number(x.At(point.x), 1) + "\" cy=\"" + Number(y.At(point.y), 1) +
             "\" r=\"5\" fill=\"" + colour + "\"><title>" + EscapeHtml(point.label) + ": " + Short(point.x) +
             ", " + Short(point.y) + "</title></circle>\n";
      const bool left = x.At(point.x) > kWidth - 160;
      svg += Text(x.At(point.x) + (left ? -8 : 8), y.At(point.y) - 6, point.label,
                  std::string("fill=\"") + colour + "\"" + (left ? " text-anchor=\"end\"" : ""));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace kvt::cli
