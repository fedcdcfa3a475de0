// SPDX-License-Identifier: Apache-2.0
// Timelines as SVG. Complete pictures are in docs/figures (tests/schedule/test_drawing_verb.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "draw/schedule_svg.hpp"
#include "draw/svg.hpp"
#include "support/error_of.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using draw::Picture;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using triax::test::error_of;

Timeline two_ranks(double begin, double forward) {
  const double end = begin + 2 * forward;
  return {{2, 1, 1},
          StageMap({0, 1}),
          Timeline::Unit::ms,
          {{{Kind::forward, 0, 0, begin, begin + forward}, {Kind::backward, 0, 0, end + 2, end + 4}},
           {{Kind::forward, 1, 0, begin + forward, end}, {Kind::backward, 1, 0, end, end + 2}}}};
}

struct Drawn {
  double x = 0, y = 0, width = 0;
  std::string tooltip;
};
/// The rectangles of passes, in the order of the file.
std::vector<Drawn> boxes(const std::string& svg) {
  static const std::regex kBox("<rect x=\"([^\"]*)\" y=\"([^\"]*)\" width=\"([^\"]*)\"[^>]*><title>([^<]*)</title>");
  std::vector<Drawn> out;
  for (std::sregex_iterator at(svg.begin(), svg.end(), kBox), end; at != end; ++at)
    out.push_back({std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3]), (*at)[4]});
  return out;
}

std::vector<std::string> tooltip(const std::vector<Drawn>& boxes) {
  std::vector<std::string> out;
  for (const Drawn& box : boxes) out.push_back(box.tooltip);
  return out;
}

TEST(ScheduleSvg, ABoxIsAsLongAsItsPass) {
  const std::vector<Drawn> drawn = boxes(draw::schedule_svg({"one", "", {{"", two_ranks(0, 1)}}}));
  EXPECT_THAT(tooltip(drawn), ElementsAre("0F0, rank 0: 0 to 1 ms", "0B0, rank 0: 4 to 6 ms", "1F0, rank 1: 1 to 2 ms",
                                          "1B0, rank 1: 2 to 4 ms"));
  const double unit = drawn[0].width;
  EXPECT_NEAR(drawn[1].width, 2 * unit, 0.02);
  EXPECT_NEAR(drawn[1].x - drawn[0].x, 4 * unit, 0.02);
  EXPECT_NEAR(drawn[2].x - drawn[0].x, unit, 0.02);
  EXPECT_EQ(drawn[0].y, drawn[1].y);
  EXPECT_LT(drawn[0].y, drawn[2].y);
}

/// A measured timeline has its own clock.
TEST(ScheduleSvg, PanelsStandAboveEachOtherInOneScale) {
  const std::string svg =
      draw::schedule_svg({"a run", "", {{"measured", two_ranks(1000, 2)}, {"simulated", two_ranks(0, 1)}}});
  const std::vector<Drawn> drawn = boxes(svg);
  ASSERT_EQ(drawn.size(), 8u);
  EXPECT_EQ(drawn[0].tooltip, "0F0, rank 0: 1000 to 1002 ms");
  EXPECT_EQ(drawn[4].tooltip, "0F0, rank 0: 0 to 1 ms");
  EXPECT_EQ(drawn[0].x, drawn[4].x);
  EXPECT_NEAR(drawn[0].width, 2 * drawn[4].width, 0.02);
  EXPECT_LT(drawn[3].y, drawn[4].y);
  EXPECT_LT(svg.find(">measured<"), svg.find(">simulated<"));
  EXPECT_LT(svg.find(">simulated<"), svg.find(drawn[4].tooltip));
}

TEST(ScheduleSvg, NumbersStandWhereTheyFit) {
  Timeline timeline{{1, 1, 2},
                    StageMap({0}),
                    Timeline::Unit::ms,
                    {{{Kind::forward, 0, 7, 0, 100}, {Kind::backward, 0, 7, 100, 100.1}}}};
  for (double at = 101; at < 300; at += 2) timeline.rows[0].push_back({Kind::backward, 0, 3, at, at + 2});
  const std::string svg = draw::schedule_svg({"one", "", {{"", timeline}}});
  EXPECT_THAT(svg, HasSubstr(">7</text>"));
  EXPECT_EQ(svg.find(">7</text>"), svg.rfind(">7</text>"));
  EXPECT_EQ(boxes(svg).size(), 102u);
}

TEST(ScheduleSvg, RecomputationHasAColourAndAName) {
  Timeline timeline = two_ranks(0, 1);
  EXPECT_THAT(draw::schedule_svg({"one", "", {{"", timeline}}}), Not(HasSubstr(">R recomputation<")));
  timeline.rows[0].push_back({Kind::recompute, 0, 0, 6, 8});
  const std::string svg = draw::schedule_svg({"one", "", {{"", timeline}}});
  EXPECT_THAT(tooltip(boxes(svg)), ::testing::Contains("0R0, rank 0: 6 to 8 ms"));
  EXPECT_THAT(svg, HasSubstr(">R recomputation<"));
  EXPECT_THAT(svg, HasSubstr("#7e57a6"));
  EXPECT_THAT(svg, Not(HasSubstr(">end of the step<")));
}

TEST(ScheduleSvg, TheEndOfAStepIsDrawnAndTransfersAreNot) {
  Timeline timeline = two_ranks(0, 1);
  timeline.rows[0].push_back({Kind::opt_step, 0, -1, 6, 8});
  timeline.rows[0].push_back({Kind::send_f, 0, 0, 1, 1.5});
  const std::string svg = draw::schedule_svg({"one", "", {{"", timeline}}});
  EXPECT_THAT(tooltip(boxes(svg)), ::testing::Contains("0OPT_STEP, rank 0: 6 to 8 ms"));
  EXPECT_THAT(svg, HasSubstr(">end of the step<"));
  EXPECT_THAT(svg, Not(HasSubstr("SEND")));
  EXPECT_THAT(draw::schedule_svg({"one", "", {{"", two_ranks(0, 1)}}}), Not(HasSubstr(">end of the step<")));
}

TEST(ScheduleSvg, ChunksAreDarkToLight) {
  const Timeline timeline{
      {1, 2, 1}, StageMap({0, 0}), Timeline::Unit::ms, {{{Kind::forward, 0, 0, 0, 1}, {Kind::forward, 1, 0, 1, 2}}}};
  const std::string svg = draw::schedule_svg({"one", "", {{"", timeline}}});
  EXPECT_LT(svg.find("fill=\"#2f69b0\"><title>0F0"), svg.find("fill=\"#adcdf0\"><title>1F0"));
  EXPECT_THAT(svg, HasSubstr("dark to light: a rank's chunks 0 to 1"));
  EXPECT_THAT(svg, HasSubstr(">microbatch chunks in flight<"));
}

TEST(ScheduleSvg, TextsAreEscaped) {
  const std::string svg = draw::schedule_svg({"<a> & \"b\"", "", {{"\x01 \xff \xc3\xa4", two_ranks(0, 1)}}});
  EXPECT_THAT(svg, HasSubstr("&lt;a&gt; &amp; &quot;b&quot;"));
  EXPECT_THAT(svg, HasSubstr(">\xEF\xBF\xBD \xEF\xBF\xBD \xc3\xa4<")); // characters that XML cannot and can contain
}

TEST(ScheduleSvg, NumbersOfAPictureAreShort) {
  EXPECT_EQ(draw::svg_number(12), "12");
  EXPECT_EQ(draw::svg_number(0.5), "0.5");
  EXPECT_EQ(draw::svg_number(1.0 / 3), "0.33");
  EXPECT_EQ(draw::svg_number(-0.001), "0");
}

Picture of_boxes(int ranks, int boxes_per_rank) {
  Timeline timeline{{ranks, 1, boxes_per_rank}, StageMap(std::vector<int>(1, 0)), Timeline::Unit::ms, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Span>& row = timeline.rows.emplace_back();
    for (int at = 0; at < boxes_per_rank; ++at) row.push_back({Kind::forward, 0, at, at * 1.0, at + 1.0});
  }
  return {"large", "", {{"", timeline}}};
}

TEST(ScheduleSvg, RefusesPicturesThatAreTooLargeToRead) {
  EXPECT_TRUE(draw::svg_support(of_boxes(256, 128)).empty());
  EXPECT_EQ(draw::svg_support(of_boxes(257, 1)).front().message,
            "a picture of 257 ranks is too large to read; 256 can be drawn");
  EXPECT_EQ(draw::svg_support(of_boxes(1, 32769)).front().message,
            "a picture of 32769 passes is too large to read; 32768 can be drawn");
  EXPECT_THAT(error_of([] { draw::schedule_svg(of_boxes(1, 32769)); }), HasSubstr("too large to read"));
}

TEST(ScheduleSvg, NothingIsNotDrawn) {
  EXPECT_THAT(draw::svg_support({"none", "", {{"", Timeline{}}}}).front().message, HasSubstr("nothing to draw"));
  EXPECT_THAT(draw::svg_support({"none", "", {}}).front().message, HasSubstr("nothing to draw"));
}

TEST(ScheduleSvg, RefusesPanelsOfDifferentUnits) {
  Timeline units = two_ranks(0, 1);
  units.unit = Timeline::Unit::pass;
  EXPECT_THAT(error_of([&] {
                draw::schedule_svg({"two", "", {{"a", units}, {"b", two_ranks(0, 1)}}});
              }),
              HasSubstr("different units"));
}

} // namespace
