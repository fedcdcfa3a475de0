// SPDX-License-Identifier: Apache-2.0
// Fewer points of a long series, with the same picture.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <vector>

namespace triax::page {

/// `y` is not finite where the series has a gap.
struct Point {
  double x = 0, y = 0;
};

inline constexpr std::size_t kMaxPoints = 2000; // of a series in a chart

/// Divides the series into sections of equal counts, and keeps the first, the last, the smallest and the largest point
/// of each (Jugel et al., M4, VLDB 2014). Of gaps between two kept points, one is kept. The same points for the same
/// input. At most `most` finite points; not below 4.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most = kMaxPoints);

/// For each point that is not a gap: the mean of the points up to `reach` places before and after it, without gaps;
/// near the ends of the series equally fewer on both sides.
std::vector<Point> moving_mean(const std::vector<Point>& points, std::size_t reach);

} // namespace triax::page
