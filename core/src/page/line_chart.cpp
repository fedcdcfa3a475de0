// SPDX-License-Identifier: Apache-2.0
#include "page/line_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "page/page_style.hpp"
#include "triax/text.hpp"

namespace triax::page {

namespace {

constexpr ChartSize kWide{960, 290}, kNarrow{440, 225};
constexpr std::size_t kMaxUnder = 3; // under-0 to under-3 of the style sheet

struct Range {
  double min = std::numeric_limits<double>::infinity(), max = -min;
  void add(double value) {
    min = std::min(min, value);
    max = std::max(max, value);
  }
  bool has_values() const { return min <= max; }
};

bool has_marks(const Series& series) {
  return series.form == Series::Form::marks || series.form == Series::Form::marks_on_line;
}

/// The points that can be drawn; the others become gaps.
std::vector<Point> drawable(const Series& series, bool is_log) {
  std::vector<Point> out;
  for (const Point& point : series.points) {
    if (!std::isfinite(point.x)) continue;
    const bool is_drawn = std::isfinite(point.y) && (!is_log || point.y > 0);
    out.push_back({point.x, is_drawn ? point.y : std::numeric_limits<double>::quiet_NaN()});
  }
  return thinned(out);
}

/// `later`: number of lines that are drawn over this one. It is wider than these, so that equal lines are all visible.
std::string line_svg(const ChartFrame& frame, const std::vector<Point>& points, std::size_t number,
                     const Series& series, std::size_t later) {
  std::string path;
  bool drawing = false, alone = false; // a point between gaps is a dot
  for (const Point& point : points) {
    if (!std::isfinite(point.y)) {
      if (alone) path += "h0";
      drawing = alone = false;
      continue;
    }
    path += path_to(drawing ? 'L' : 'M', frame.x(point.x), frame.y(point.y));
    alone = !drawing;
    drawing = true;
  }
  if (alone) path += "h0";
  const std::string width = series.form == Series::Form::line    ? text(" under-{}", std::min(later, kMaxUnder))
                            : series.form == Series::Form::faint ? " faint"
                                                                 : " thin";
  const std::string read_out = series.form == Series::Form::faint ? "" : text(" data-series=\"{}\"", number);
  return text("<path class=\"line {}{}\"{} d=\"{}\"/>\n", line_classes(series.style), width, read_out, path);
}

std::string marks_svg(const ChartFrame& frame, const std::vector<Point>& points, const Series& series,
                      const std::string& x_name) {
  std::string out;
  for (const Point& point : points)
    if (std::isfinite(point.y))
      out += mark_svg(series.style, frame.x(point.x), frame.y(point.y),
                      text("{}{}{} {}: {}", series.name, series.name.empty() ? "" : ", ", x_name, point.x, point.y));
  return out;
}

LegendEntry legend_of(const Series& series) {
  std::string sample;
  if (series.form != Series::Form::marks)
    sample += text("<path class=\"line {}\" d=\"M1 6H27\"/>", line_classes(series.style));
  if (has_marks(series)) sample += mark_svg(series.style, 14, 6);
  return {sample, series.name};
}

/// "loss over step: run-a: first 5.5, last 2.1; run-b: first 5.5, last 2.3"
std::string description_of(const LineChart& chart, const std::vector<std::vector<Point>>& drawn) {
  std::string out = text("{} over {}:", chart.title, chart.x_name);
  for (std::size_t at = 0; at < drawn.size(); ++at) {
    std::vector<double> values;
    for (const Point& point : drawn[at])
      if (std::isfinite(point.y)) values.push_back(point.y);
    if (values.empty()) continue;
    const std::string& name = chart.series[at].name;
    out += text("{} {}{}first {}, last {}", out.ends_with(':') ? "" : ";", name, name.empty() ? "" : ": ",
                values.front(), values.back());
  }
  return out;
}

} // namespace

void add_scattered(LineChart& chart, Series series) {
  constexpr std::size_t kMinScattered = 300;
  if (series.points.size() < kMinScattered) {
    chart.series.push_back(std::move(series));
    return;
  }
  Series mean = series;
  mean.points = moving_mean(series.points, series.points.size() / 100);
  series.form = Series::Form::faint;
  series.name.clear();
  // Faint lines first, so that no mean is hidden by another series.
  const auto first_other =
      std::ranges::find_if(chart.series, [](const Series& of) { return of.form != Series::Form::faint; });
  chart.series.insert(first_other, std::move(series));
  chart.series.push_back(std::move(mean));
}

std::optional<Figure> line_chart(const LineChart& chart) {
  Range x, y;
  std::vector<std::vector<Point>> drawn;
  for (const Series& series : chart.series) {
    drawn.push_back(drawable(series, chart.is_log));
    for (const Point& point : drawn.back())
      if (std::isfinite(point.y)) x.add(point.x), y.add(point.y);
  }
  if (!y.has_values()) return {};
  const ChartSize size = chart.is_wide ? kWide : kNarrow;
  const bool is_integer = std::ranges::all_of(drawn, [](const std::vector<Point>& points) {
    return std::ranges::all_of(points, [](const Point& point) { return point.x == std::floor(point.x); });
  });
  const ChartFrame frame(
      size, make_axis({.min = x.min, .max = x.max, .is_integer = is_integer, .max_ticks = chart.is_wide ? 12 : 7}),
      make_axis({.min = y.min,
                 .max = y.max,
                 .is_log = chart.is_log,
                 .from_zero = chart.from_zero && !chart.is_log,
                 .fits_ticks = true}),
      chart.x_name, chart.y_name);
  std::string content;
  std::vector<LegendEntry> legend;
  for (std::size_t at = 0; at < drawn.size(); ++at) {
    const Series& series = chart.series[at];
    const auto later = std::count_if(chart.series.begin() + static_cast<std::ptrdiff_t>(at) + 1, chart.series.end(),
                                     [](const Series& of) { return of.form == Series::Form::line; });
    if (series.form != Series::Form::marks)
      content += line_svg(frame, drawn[at], legend.size(), series, static_cast<std::size_t>(later));
    if (has_marks(series)) content += marks_svg(frame, drawn[at], series, chart.x_name);
    if (!series.name.empty() && series.form != Series::Form::faint) legend.push_back(legend_of(series));
  }
  return Figure{chart.title, frame.svg(description_of(chart, drawn), content), chart.caption, legend, chart.is_wide};
}

} // namespace triax::page
