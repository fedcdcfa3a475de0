// SPDX-License-Identifier: Apache-2.0
// The result of a comparison in rounds: the ratio of each round, their mean with its confidence interval, and the line
// of equal times.
//
// Threads: pure functions. Errors: none; ratios that are not positive and finite are left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "page/page.hpp"

namespace triax::page {

struct PairedPlot {
  std::string title, caption;
  std::vector<double> ratios;         // B / A, by round
  double mean = 1, low = 1, high = 1; // the mean and its 95 % confidence interval
};

/// Empty if there is no ratio to draw.
std::optional<Figure> paired_plot(const PairedPlot& plot);

} // namespace triax::page
