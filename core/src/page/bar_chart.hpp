// SPDX-License-Identifier: Apache-2.0
// Horizontal bars: grouped, such as the bytes of each axis of several runs, or stacked, such as the parts of a step.
//
// Threads: pure functions. Errors: none; values that are negative or not finite have no bar.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "page/page.hpp"

namespace triax::page {

/// A series has a value for each group.
struct BarSeries {
  std::string name;
  std::vector<double> values;
  std::size_t style = 0;
};

struct BarChart {
  std::string title;
  std::vector<std::string> groups; // below each other
  std::vector<BarSeries> series;   // of each group: below each other, or after each other if stacked
  bool is_stacked = false;
  std::function<std::string(double)> value_text; // with its unit; beside a bar or stack
  bool is_wide = false;
  std::string caption = {};
};

/// Empty if all values are 0.
std::optional<Figure> bar_chart(const BarChart& chart);

} // namespace triax::page
