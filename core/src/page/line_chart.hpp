// SPDX-License-Identifier: Apache-2.0
// Several series over one axis, such as the losses of runs over their steps.
//
// Threads: pure functions. Errors: none; what cannot be drawn is a gap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "page/chart_frame.hpp"
#include "page/page.hpp"
#include "page/thinning.hpp"

namespace triax::page {

struct Series {
  /// faint: a line behind the others, which is not in the legend.
  enum class Form { line, faint, marks, marks_on_line };
  std::string name;
  std::vector<Point> points; // ascending x
  std::size_t style = 0;     // colour, dashes and mark; equal numbers look equal
  Form form = Form::line;
};

struct LineChart {
  std::string title, x_name, y_name;
  std::vector<Series> series;
  bool is_log = false;    // logarithmic y axis; values that are not positive are gaps
  bool from_zero = false; // the y axis includes 0
  bool is_wide = false;
  std::string caption = {};
};

/// Adds a series of many values that scatter: faint, and over it its moving mean over 1 % of the values before and
/// after each. A short series is added as it is.
void add_scattered(LineChart& chart, Series series);

/// Empty if no series has a point that can be drawn.
std::optional<Figure> line_chart(const LineChart& chart);

} // namespace triax::page
