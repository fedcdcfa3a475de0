// SPDX-License-Identifier: Apache-2.0
// Clock alignment: times of several machines are converted to one clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/clock_alignment.hpp"
#include "support/error_of.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 1F1B of one microbatch over three ranks: F takes 2, B takes 4, and a link between two ranks takes `link`.
Timeline three_ranks(double link) {
  Timeline out{{3, 1, 1}, StageMap({0, 1, 2}), Timeline::Unit::ms, {}};
  const double down = 2 + link, up = 4 + link, last = 3 * 2 + 2 * link;
  for (int rank = 0; rank < 3; ++rank) {
    const double forward = rank * down, backward = last + (2 - rank) * up;
    out.rows.push_back(
        {{Kind::forward, rank, 0, forward, forward + 2}, {Kind::backward, rank, 0, backward, backward + 4}});
  }
  return out;
}

void shift(std::vector<Span>& row, double by) {
  for (Span& span : row) span.start += by, span.end += by;
}

TEST(Clocks, AreAlignedByDependenciesBetweenRanks) {
  Timeline timeline = three_ranks(0.5);
  shift(timeline.rows[1], 1000);
  shift(timeline.rows[2], -7e6);
  const Alignment aligned = align(timeline, {0, 1, 2});
  // Links take the same time in both directions, so the middle of the bounds is exact; each link adds its time to
  // `within`.
  EXPECT_THAT(aligned.shift, ElementsAre(0, DoubleNear(-1000, 1e-6), DoubleNear(7e6, 1e-6)));
  EXPECT_NEAR(aligned.within, 1, 1e-6);
}

TEST(Clocks, OfOneMachineStayAsTheyAre) {
  const Alignment aligned = align(three_ranks(0.5), {0, 0, 0});
  EXPECT_THAT(aligned.shift, ElementsAre(0, 0, 0));
  EXPECT_EQ(aligned.within, 0);
}

TEST(Clocks, ALinkThatIsSlowOneWayPutsThemOffByNoMoreThanTheBound) {
  Timeline timeline{{2, 1, 1}, StageMap({0, 1}), Timeline::Unit::ms, {}};
  timeline.rows = {{{Kind::forward, 0, 0, 0, 2}, {Kind::backward, 0, 0, 11, 15}}, // forwards take 3 in transit
                   {{Kind::forward, 1, 0, 5, 7}, {Kind::backward, 1, 0, 7, 11}}};
  const Alignment aligned = align(timeline, {0, 1});
  EXPECT_THAT(aligned.shift, ElementsAre(0, -1.5)); // although both clocks are right
  EXPECT_EQ(aligned.within, 1.5);
}

TEST(Clocks, ThatRunAtOtherRatesAreAsFarOffAsTheyContradictThemselves) {
  Timeline timeline{{2, 1, 1}, StageMap({0, 1}), Timeline::Unit::ms, {}};
  timeline.rows = {{{Kind::forward, 0, 0, 0, 2}, {Kind::backward, 0, 0, 11, 15}},
                   {{Kind::forward, 1, 0, 1, 3}, {Kind::backward, 1, 0, 10, 14}}}; // starts 1 early, ends 3 late
  const Alignment aligned = align(timeline, {0, 1});
  EXPECT_THAT(aligned.shift, ElementsAre(0, -1));
  EXPECT_EQ(aligned.within, 2);
}

TEST(Clocks, ThatNothingConnectsAreRefused) {
  Timeline timeline = three_ranks(0.5);
  for (std::vector<Span>& row : timeline.rows) row.pop_back(); // forwards give a bound in one direction only
  EXPECT_THAT(triax::test::error_of([&] { align(timeline, {0, 1, 1}); }), HasSubstr("no transfer relates clock"));
}

} // namespace
