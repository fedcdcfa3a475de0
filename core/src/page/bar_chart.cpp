// SPDX-License-Identifier: Apache-2.0
#include "page/bar_chart.hpp"

#include <algorithm>
#include <cmath>

#include "base/printable.hpp"
#include "draw/svg.hpp"
#include "page/chart_frame.hpp"
#include "page/html_text.hpp"
#include "page/page_style.hpp"
#include "triax/text.hpp"

namespace triax::page {

namespace {

constexpr double kBar = 16, kBarGap = 3, kGroupGap = 12, kMinBar = 1;
constexpr std::size_t kMaxName = 24; // characters of a group's name

double value_of(const BarSeries& series, std::size_t group) {
  const double value = group < series.values.size() ? series.values[group] : 0;
  return std::isfinite(value) && value > 0 ? value : 0;
}

double total_of(const BarChart& chart, std::size_t group) {
  double out = 0;
  for (const BarSeries& series : chart.series) out += value_of(series, group);
  return out;
}

class BarDrawing {
 public:
  explicit BarDrawing(const BarChart& chart) : chart_(chart), width_(chart.is_wide ? 960 : 440) {
    double values = 0;
    for (std::size_t group = 0; group < chart.groups.size(); ++group) {
      left_ = std::max(left_, text_width(shortened(chart.groups[group], kMaxName)) + 10);
      for (const BarSeries& series : chart.series)
        values = std::max(values, text_width(chart.value_text(value_of(series, group))));
      values = std::max(values, text_width(chart.value_text(total_of(chart, group))));
      for (const BarSeries& series : chart.series)
        largest_ = std::max(largest_, chart.is_stacked ? total_of(chart, group) : value_of(series, group));
    }
    right_ = width_ - values - 12;
  }

  bool has_values() const { return largest_ > 0; }

  std::string svg() {
    for (std::size_t group = 0; group < chart_.groups.size(); ++group) {
      const double bars = chart_.is_stacked ? 1 : static_cast<double>(chart_.series.size());
      const double height = bars * (kBar + kBarGap) - kBarGap;
      out_ +=
          text_svg(left_ - 8, y_ + height / 2 + 4, "text-anchor=\"end\"", shortened(chart_.groups[group], kMaxName));
      chart_.is_stacked ? stack(group) : bars_of(group);
      y_ += height + kGroupGap;
    }
    return text("<svg{} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                chart_.is_wide ? " class=\"long\"" : "", draw::svg_number(width_), draw::svg_number(y_ - kGroupGap + 4),
                html_escaped(description_)) +
           out_ + "</svg>\n";
  }

 private:
  double pixels(double value) const { return value / largest_ * (right_ - left_); }

  void describe(const std::string& bar) { description_ += (description_.empty() ? chart_.title + ": " : "; ") + bar; }

  std::string bar_text(const BarSeries& series, std::size_t group) const {
    return text("{}{}{}: {}", chart_.groups[group], series.name.empty() ? "" : ", ", series.name,
                chart_.value_text(value_of(series, group)));
  }

  void bars_of(std::size_t group) {
    double y = y_;
    for (const BarSeries& series : chart_.series) {
      const double value = value_of(series, group), width = value > 0 ? std::max(pixels(value), kMinBar) : 0;
      if (value > 0) out_ += bar_svg(series.style, left_, y, width, kBar, bar_text(series, group));
      out_ += text_svg(left_ + width + 6, y + kBar / 2 + 4, "class=\"tick\"",
                       value > 0 ? chart_.value_text(value) : "none");
      describe(bar_text(series, group));
      y += kBar + kBarGap;
    }
  }

  void stack(std::size_t group) {
    double x = left_;
    for (const BarSeries& series : chart_.series) {
      const double value = value_of(series, group);
      if (value <= 0) continue;
      out_ += bar_svg(series.style, x, y_, pixels(value), kBar, bar_text(series, group));
      describe(bar_text(series, group));
      x += pixels(value);
    }
    out_ += text_svg(x + 6, y_ + kBar / 2 + 4, "class=\"tick\"", chart_.value_text(total_of(chart_, group)));
  }

  const BarChart& chart_;
  const double width_;
  double left_ = 10, right_ = 0, largest_ = 0, y_ = 4;
  std::string out_, description_;
};

} // namespace

std::optional<Figure> bar_chart(const BarChart& chart) {
  BarDrawing drawing(chart);
  if (!drawing.has_values()) return {};
  std::vector<LegendEntry> legend;
  for (const BarSeries& series : chart.series) {
    const bool is_drawn =
        !chart.is_stacked || std::ranges::any_of(series.values, [](double value) { return value > 0; });
    if (!series.name.empty() && is_drawn) legend.push_back({bar_svg(series.style, 1, 0, 26, 12), series.name});
  }
  return Figure{chart.title, drawing.svg(), chart.caption, legend, chart.is_wide};
}

} // namespace triax::page
