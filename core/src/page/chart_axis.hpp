// SPDX-License-Identifier: Apache-2.0
// Axes of charts: ranges, ticks with round numbers, and their labels.
//
// Threads: pure functions. Errors: Error for a range that is not finite.
#pragma once

#include <string>
#include <vector>

namespace triax::page {

struct AxisRequest {
  double min = 0, max = 1; // of the values
  bool is_log = false;     // needs min > 0
  bool from_zero = false;  // includes 0
  bool fits_ticks = false; // begins and ends at a tick
  bool is_integer = false; // ticks are whole numbers
  int max_ticks = 6;
};

struct ChartAxis {
  double from = 0, to = 1;
  bool is_log = false;
  double tick_step = 1; // smallest distance of ticks
  std::vector<double> ticks;

  /// 0 at `from`, 1 at `to`.
  double part(double value) const;
  /// "0.25", "1500", "25 k": with as many decimals as the distance of the ticks needs.
  std::string label(double tick) const;
};

ChartAxis make_axis(const AxisRequest& request);

/// The smallest of 1, 2 and 5 times a power of ten that is at least `distance`.
double nice_step(double distance);

} // namespace triax::page
