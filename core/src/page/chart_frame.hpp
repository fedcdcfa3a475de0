// SPDX-License-Identifier: Apache-2.0
// The plot area of a chart: grid, tick labels and names of the axes around it.
//
// Threads: values.
#pragma once

#include <string>

#include "page/chart_axis.hpp"

namespace triax::page {

struct ChartSize {
  double width = 440, height = 225;
};

class ChartFrame {
 public:
  /// `x_name` is below the axis, `y_name` above it.
  ChartFrame(const ChartSize& size, ChartAxis x, ChartAxis y, std::string x_name, std::string y_name);

  double x(double value) const { return left_ + x_.part(value) * (right_ - left_); }
  double y(double value) const { return bottom_ + y_.part(value) * (top_ - bottom_); }
  double left() const { return left_; }
  double right() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }

  /// The whole picture. `description`: for screen readers. `content` is markup in the coordinates of x() and y().
  std::string svg(const std::string& description, const std::string& content) const;

 private:
  ChartSize size_;
  ChartAxis x_, y_;
  std::string x_name_, y_name_;
  double left_, right_, top_, bottom_;
};

/// "M0 1L2 3"
std::string path_to(char command, double x, double y);
std::string text_svg(double x, double y, const char* attributes, const std::string& text);
/// At font size 11; the fonts of the reader are not known.
double text_width(const std::string& text);

} // namespace triax::page
