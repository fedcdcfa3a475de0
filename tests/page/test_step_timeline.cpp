// SPDX-License-Identifier: Apache-2.0
// Figures of measured steps and of schedules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "page/schedule_figure.hpp"
#include "page/step_timeline.hpp"

namespace {
using namespace triax;
using namespace triax::page;
using report::RankTimeline;
using schedule::Kind;
using ::testing::HasSubstr;
using ::testing::Not;

RankTimeline rank_of(int rank) {
  RankTimeline out{rank, 7, {{{Kind::forward, 0, 0, 100, 104}}, {{Kind::backward, 0, 0, 106, 112}}}};
  out.ranks = 2;
  out.start = 100;
  out.end = 120;
  out.actions = {{{Kind::opt_step, -1, -1, 113, 119}}};
  out.waits = {{104, 106, "0RECV_B<0>", 1}};
  out.calls = {{"all_reduce", "data", "0REDUCE", -1, 4096, 112, 113, true}};
  return out;
}

TEST(StepTimeline, ShowsPassesWaitsAndCalls) {
  const std::vector<RankTimeline> ranks = {rank_of(0), rank_of(1)};
  const auto figure = step_timeline("step", {{"A", ranks}, {"B", ranks}});
  ASSERT_TRUE(figure);
  for (const char* part : {"class=\"pass pass-forward\"", "class=\"pass pass-backward\"", "class=\"pass pass-update\"",
                           "class=\"wait\"", "all_reduce of data, rank 1: 4.1 kB, 1.000 ms", "A: 20.00 ms", ">B0<"})
    EXPECT_THAT(figure->svg, HasSubstr(part));
  EXPECT_THAT(figure->svg, Not(HasSubstr("B<0>")));
  EXPECT_EQ(figure->caption, "");
}

TEST(StepTimeline, ShowsRecomputation) {
  RankTimeline rank = rank_of(0);
  rank.passes.insert(rank.passes.begin() + 1, schedule::MeasuredPass{{Kind::recompute, 0, 0, 104, 106}});
  rank.waits.clear();
  const auto figure = step_timeline("step", {{"", std::span(&rank, 1)}});
  ASSERT_TRUE(figure);
  for (const char* part : {"class=\"pass pass-recompute\"", "0R0, rank 0: 2.000 ms", ">R0<"})
    EXPECT_THAT(figure->svg, HasSubstr(part));
  const auto is_named = [](const LegendEntry& of) { return of.name == "recomputation"; };
  EXPECT_TRUE(std::ranges::any_of(figure->legend, is_named));
}

TEST(StepTimeline, OfManyRanksDrawsTheFirst) {
  std::vector<RankTimeline> ranks;
  for (int rank = 0; rank < 40; ++rank) ranks.push_back(rank_of(rank));
  const auto figure = step_timeline("step", {{"", ranks}});
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->svg, Not(HasSubstr("rank 32")));
  EXPECT_EQ(figure->caption, "Only the first 32 ranks are drawn. ");
}

TEST(StepTimeline, WithoutTimeThereIsNoFigure) {
  EXPECT_FALSE(step_timeline("step", {}));
  EXPECT_FALSE(step_timeline("step", {{"A", std::vector<RankTimeline>(1)}}));
}

TEST(ScheduleFigure, ItsColoursAreReplacedByThoseOfThePage) {
  const schedule::Timeline timeline{{1, 1, 1},
                                    schedule::StageMap({0}),
                                    schedule::Timeline::Unit::ms,
                                    {{{Kind::forward, 0, 0, 0, 1}, {Kind::backward, 0, 0, 1, 3}}}};
  const auto figure = schedule_figure("schedule", {"title", "note", {{"measured", timeline}}});
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->svg, HasSubstr("<svg class=\"schedule\" "));
  const std::string rules = schedule_style();
  for (const char* colour : {"#333740", "#6b7280", "#e7eaf0"}) {
    EXPECT_THAT(figure->svg, HasSubstr(colour));
    EXPECT_THAT(rules, HasSubstr(colour));
  }
}

} // namespace
