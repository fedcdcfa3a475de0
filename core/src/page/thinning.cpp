// SPDX-License-Identifier: Apache-2.0
#include "page/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace triax::page {

namespace {

/// Indices of the points to keep of [begin, end), ascending.
std::set<std::size_t> kept_of(const std::vector<Point>& points, std::size_t begin, std::size_t end) {
  std::set<std::size_t> out;
  std::size_t first = end, last = end, smallest = end, largest = end;
  for (std::size_t at = begin; at < end; ++at) {
    if (!std::isfinite(points[at].y)) continue;
    if (first == end) first = smallest = largest = at;
    last = at;
    if (points[at].y < points[smallest].y) smallest = at;
    if (points[at].y > points[largest].y) largest = at;
  }
  if (first != end) out.insert({first, smallest, largest, last});
  return out;
}

} // namespace

std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most) {
  const auto finite = static_cast<std::size_t>(
      std::ranges::count_if(points, [](const Point& point) { return std::isfinite(point.y); }));
  const std::size_t sections = finite <= most ? points.size() : std::max<std::size_t>(most / 4, 1);
  std::vector<Point> out;
  std::size_t next = 0; // after the last kept point
  for (std::size_t section = 0; section < sections; ++section) {
    const std::size_t begin = points.size() * section / sections, end = points.size() * (section + 1) / sections;
    for (const std::size_t at : kept_of(points, begin, end)) {
      for (std::size_t between = next; between < at; ++between)
        if (!std::isfinite(points[between].y)) {
          out.push_back(points[between]);
          break;
        }
      out.push_back(points[at]);
      next = at + 1;
    }
  }
  return out;
}

std::vector<Point> moving_mean(const std::vector<Point>& points, std::size_t reach) {
  std::vector<double> sums = {0};        // sums over the points before each point
  std::vector<std::size_t> counts = {0}; // how many of these points are not gaps
  for (const Point& point : points) {
    const bool is_there = std::isfinite(point.y);
    sums.push_back(sums.back() + (is_there ? point.y : 0));
    counts.push_back(counts.back() + (is_there ? 1 : 0));
  }
  std::vector<Point> out = points;
  for (std::size_t at = 0; at < points.size(); ++at) {
    if (!std::isfinite(points[at].y)) continue;
    const std::size_t near = std::min({reach, at, points.size() - 1 - at});
    const std::size_t begin = at - near, end = at + near + 1;
    out[at].y = (sums[end] - sums[begin]) / static_cast<double>(counts[end] - counts[begin]);
  }
  return out;
}

} // namespace triax::page
