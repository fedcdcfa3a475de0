// SPDX-License-Identifier: Apache-2.0
// Axes and charts: ticks, gaps, logarithms, names from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "page/bar_chart.hpp"
#include "page/line_chart.hpp"
#include "page/paired_plot.hpp"
#include "triax/text.hpp"

namespace {
using namespace triax::page;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels(const AxisRequest& request) {
  std::vector<std::string> out;
  const ChartAxis axis = make_axis(request);
  for (const double tick : axis.ticks) out.push_back(axis.label(tick));
  return out;
}

std::size_t count(const std::string& text, const std::string& of) {
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.find(of, at)) != std::string::npos; at += of.size()) ++out;
  return out;
}

TEST(ChartAxis, TicksAreRoundNumbers) {
  EXPECT_THAT(labels({.min = 2.13, .max = 5.6}), ElementsAre("3", "4", "5"));
  EXPECT_THAT(labels({.min = 2.13, .max = 5.6, .fits_ticks = true}), ElementsAre("2", "3", "4", "5", "6"));
  EXPECT_THAT(labels({.min = 0.91, .max = 1.04, .max_ticks = 4}), ElementsAre("0.95", "1.00"));
  EXPECT_THAT(labels({.min = 0, .max = 250'000}), ElementsAre("0", "50 k", "100 k", "150 k", "200 k", "250 k"));
  EXPECT_THAT(labels({.min = 0, .max = 3e-5, .max_ticks = 3}), ElementsAre("0", "1e-05", "2e-05", "3e-05"));
  EXPECT_THAT(labels({.min = -1, .max = 1, .max_ticks = 4}), ElementsAre("-1.0", "-0.5", "0", "0.5", "1.0"));
}

TEST(ChartAxis, TicksOfStepsAreWholeNumbers) {
  EXPECT_THAT(labels({.min = 1, .max = 3, .is_integer = true, .max_ticks = 10}), ElementsAre("1", "2", "3"));
  EXPECT_THAT(labels({.min = 7, .max = 7, .is_integer = true}), ElementsAre("7"));
}

TEST(ChartAxis, TicksOfALogarithmArePowersOfTen) {
  EXPECT_THAT(labels({.min = 0.02, .max = 30, .is_log = true}), ElementsAre("0.1", "1", "10"));
  EXPECT_THAT(labels({.min = 0.025, .max = 6.3, .is_log = true}), // 2.6 decades with two powers of ten
              ElementsAre("0.05", "0.1", "0.2", "0.5", "1", "2", "5"));
  EXPECT_THAT(labels({.min = 0.1, .max = 10, .is_log = true}), ElementsAre("0.1", "0.2", "0.5", "1", "2", "5", "10"));
  // Less than a decade: the ticks are those of a linear axis.
  EXPECT_THAT(labels({.min = 2, .max = 5.5, .is_log = true}), ElementsAre("2", "3", "4", "5"));
}

TEST(ChartAxis, EqualValuesHaveARange) {
  for (const double value : {0.0, 3.5, -2.0, 1e12, 1e-9}) {
    const ChartAxis axis = make_axis({.min = value, .max = value, .fits_ticks = true});
    EXPECT_LT(axis.from, axis.to) << value;
    EXPECT_FALSE(axis.ticks.empty()) << value;
  }
  EXPECT_LT(make_axis({.min = 2, .max = 2, .is_log = true}).from, 2);
}

TEST(LineChart, GapsDivideALine) {
  const auto figure = line_chart({"loss", "step", "", {{"", {{1, 3}, {2, 2}, {3, kGap}, {4, 2}, {5, kGap}, {6, 1}}}}});
  ASSERT_TRUE(figure);
  std::smatch path;
  ASSERT_TRUE(std::regex_search(figure->svg, path, std::regex("class=\"line [^>]* d=\"([^\"]*)\"")));
  EXPECT_EQ(count(path[1], "M"), 3);
  EXPECT_EQ(count(path[1], "L"), 1);
  EXPECT_EQ(count(path[1], "h0"), 2); // points between gaps are dots
}

TEST(LineChart, ALineIsWiderThanThoseDrawnOverIt) {
  const std::vector<Point> same = {{1, 3}, {2, 2}};
  LineChart chart{"loss", "step", "", {}};
  for (std::size_t style = 0; style < 6; ++style) chart.series.push_back({"run", same, style});
  const auto figure = line_chart(chart);
  ASSERT_TRUE(figure);
  const std::regex kUnder("under-([0-9])");
  std::string widths;
  for (std::sregex_iterator at(figure->svg.begin(), figure->svg.end(), kUnder), end; at != end; ++at)
    widths += (*at)[1].str();
  EXPECT_EQ(widths, "333210");
}

TEST(LineChart, WithoutValuesThereIsNoFigure) {
  EXPECT_FALSE(line_chart({"loss", "step", "", {}}));
  EXPECT_FALSE(line_chart({"loss", "step", "", {{"a", {{1, kGap}}}}}));
  LineChart log{"norm", "step", "", {{"a", {{1, 0}, {2, -1}}}}};
  log.is_log = true;
  EXPECT_FALSE(line_chart(log));
}

TEST(LineChart, SeriesDifferInColourAndDashes) {
  LineChart chart{"loss", "step", "", {}};
  for (std::size_t at = 0; at < 9; ++at) chart.series.push_back({triax::text("run {}", at), {{1, 1}, {2, 2}}, at});
  const auto figure = line_chart(chart);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->legend.size(), 9);
  for (const char* classes :
       {"series-0 dash-0", "series-1 dash-1", "series-6 dash-6", "series-0 dash-1", "series-1 dash-2"})
    EXPECT_THAT(figure->svg, HasSubstr(classes));
}

TEST(LineChart, ALongRunIsThinned) {
  LineChart chart{"loss", "step", "", {{"a", {}}}};
  for (int step = 1; step <= 50'000; ++step)
    chart.series[0].points.push_back({static_cast<double>(step), 1.0 / step + step % 7});
  EXPECT_LT(line_chart(chart)->svg.size(), 50'000);
}

TEST(LineChart, ValuesThatScatterStandBehindTheirMean) {
  LineChart chart{"loss", "step", "", {}};
  Series series{"a", {}};
  for (int step = 1; step <= 1000; ++step) series.points.push_back({static_cast<double>(step), step % 2 + 1.0});
  add_scattered(chart, series);
  add_scattered(chart, {"b", {{1, 1}, {2, 2}}});
  ASSERT_EQ(chart.series.size(), 3);
  EXPECT_NEAR(chart.series[1].points[500].y, 1.5, 0.05);
  const auto figure = line_chart(chart);
  EXPECT_EQ(figure->legend.size(), 2);
  EXPECT_THAT(figure->svg, HasSubstr(" faint\" d="));
  EXPECT_THAT(figure->svg, HasSubstr("data-series=\"1\""));
}

TEST(LineChart, NamesAreEscaped) {
  const auto figure = line_chart({"<b>", "\"x\"", "&", {{"<script>", {{1, 1}}, 0, Series::Form::marks}}});
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(figure->svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(figure->svg, HasSubstr("&quot;x&quot;"));
}

TEST(BarChart, GroupsHaveABarPerSeries) {
  const auto value_text = [](double value) { return triax::text("{} B", value); };
  const auto figure =
      bar_chart({"bytes", {"data", "tensor"}, {{"A", {3, 0}, 0}, {"B", {kGap, 5}, 1}}, false, value_text});
  ASSERT_TRUE(figure);
  EXPECT_EQ(count(figure->svg, "class=\"bar "), 2);
  EXPECT_EQ(count(figure->svg, ">none<"), 2);
  EXPECT_THAT(figure->svg, HasSubstr("data, A: 3 B"));
  EXPECT_THAT(figure->svg, HasSubstr("url(#pattern-1)"));
  EXPECT_FALSE(bar_chart({"bytes", {"data"}, {{"A", {0}, 0}}, false, value_text}));
}

TEST(BarChart, StacksShowTheirSum) {
  const auto value_text = [](double value) { return triax::text("{} ms", value); };
  const auto figure = bar_chart({"parts", {"A"}, {{"forward", {3}, 0}, {"backward", {6}, 1}}, true, value_text});
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->svg, HasSubstr(">9 ms<"));
}

TEST(PairedPlot, ShowsRoundsMeanAndInterval) {
  const auto figure = paired_plot({"ratio", "", {1.01, 1.04, 1.02, kGap}, 1.023, 1.0, 1.046});
  ASSERT_TRUE(figure);
  EXPECT_EQ(count(figure->svg, "<circle"), 3);
  EXPECT_EQ(count(figure->svg, "class=\"band\""), 1);
  EXPECT_EQ(count(figure->svg, "class=\"reference\""), 1);
  EXPECT_THAT(figure->legend[2].name, "95 % interval 1.000 to 1.046");
  EXPECT_FALSE(paired_plot({"ratio", "", {}, 1, 1, 1}));
}

} // namespace
