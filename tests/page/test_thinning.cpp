// SPDX-License-Identifier: Apache-2.0
// Long series keep their extremes, ends and gaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "page/thinning.hpp"

namespace {
using namespace triax::page;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

std::vector<Point> wave(int count) {
  std::vector<Point> out;
  for (int at = 0; at < count; ++at) out.push_back({static_cast<double>(at), std::sin(at * 0.1)});
  return out;
}

std::ptrdiff_t finite(const std::vector<Point>& points) {
  return std::ranges::count_if(points, [](const Point& point) { return std::isfinite(point.y); });
}

bool has(const std::vector<Point>& points, double x) {
  return std::ranges::any_of(points, [x](const Point& point) { return point.x == x; });
}

TEST(Thinning, AShortSeriesKeepsAllPoints) {
  EXPECT_EQ(thinned(wave(2000)).size(), 2000);
}

TEST(Thinning, ALongSeriesKeepsItsEndsAndItsExtremes) {
  std::vector<Point> points = wave(5001);
  points[1234].y = 100;
  points[4321].y = -100;
  const std::vector<Point> out = thinned(points);
  EXPECT_LE(finite(out), 2000);
  EXPECT_GT(finite(out), 1000);
  for (const double x : {0.0, 1234.0, 4321.0, 5000.0}) EXPECT_TRUE(has(out, x)) << x;
  EXPECT_TRUE(std::ranges::is_sorted(out, {}, &Point::x));
}

TEST(Thinning, KeepsGapsBetweenPoints) {
  std::vector<Point> points = wave(10'000);
  for (std::size_t at = 4000; at < 6000; ++at) points[at].y = kMissing;
  const std::vector<Point> out = thinned(points);
  ASSERT_EQ(std::ssize(out) - finite(out), 1);
  const auto gap = std::ranges::find_if(out, [](const Point& point) { return std::isnan(point.y); });
  EXPECT_EQ(std::prev(gap)->x, 3999);
  EXPECT_EQ(std::next(gap)->x, 6000);
}

TEST(Thinning, IsBoundedIfEverySecondValueIsMissing) {
  std::vector<Point> points = wave(100'000);
  for (std::size_t at = 0; at < points.size(); at += 2) points[at].y = kMissing;
  EXPECT_LE(thinned(points).size(), 4000);
}

TEST(Thinning, OfNothingIsNothing) {
  EXPECT_TRUE(thinned({}).empty());
  EXPECT_TRUE(thinned({{0, kMissing}, {1, kMissing}}).empty());
}

TEST(MovingMean, IsOfThePointsAround) {
  const std::vector<Point> out = moving_mean({{0, 1}, {1, 3}, {2, 5}, {3, kMissing}, {4, 8}}, 1);
  EXPECT_EQ(out[0].y, 1); // the ends have no points on one side
  EXPECT_EQ(out[1].y, 3);
  EXPECT_EQ(out[2].y, 4);
  EXPECT_TRUE(std::isnan(out[3].y));
  EXPECT_EQ(out[4].y, 8);
}

} // namespace
