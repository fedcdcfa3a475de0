// SPDX-License-Identifier: Apache-2.0
// The time of the passes of a step: formulas, transfers that hold both ends, and extrapolation.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost/exchange_programs.hpp"
#include "cost/pipeline_cost.hpp"
#include "support/loaded_scheduler.hpp"

namespace triax::cost {
namespace {

using schedule::Boundaries;

/// Backwards take twice as long as forwards; the last stage is slower.
PipelineTimes times_of(const PipelineShape& shape, double link_s) {
  const auto stages = static_cast<std::size_t>(shape.stages());
  PipelineTimes out{std::vector<StageTime>(stages, {1.0, 2.0}), std::vector<LinkTime>(stages - 1, {0.0, link_s, 0.0})};
  return out;
}

class PipelineCost : public testing::Test {
 protected:
  RankEnds simulated(const std::string& scheduler, const PipelineShape& shape, const PipelineTimes& times,
                     Boundaries boundaries = Boundaries::whole) {
    const test::LoadedScheduler loaded(scheduler);
    return simulate_pipeline([&](const PipelineShape& of) { return loaded->rows(of); }, shape, boundaries, times);
  }
  RankEnds extrapolated(const std::string& scheduler, const PipelineShape& shape, const PipelineTimes& times) {
    const test::LoadedScheduler loaded(scheduler);
    return pipeline_ends([&](const PipelineShape& of) { return loaded->rows(of); }, shape, Boundaries::whole, times);
  }
};

TEST_F(PipelineCost, IsTheFormulaOfOneForwardOneBackwardWithoutTransferTime) {
  for (const int p : {1, 2, 3, 8})
    for (const int m : {p, p + 1, 3 * p}) {
      const PipelineShape shape{p, 1, m};
      const RankEnds ends = simulated("sched-1f1b", shape, times_of(shape, 0));
      EXPECT_DOUBLE_EQ(*std::ranges::max_element(ends), (m + p - 1) * 3.0) << p << ' ' << m;
    }
}

// Equation of section 2.2.2 of Narayanan et al., SC'21: a bubble of (p - 1) / v passes. Ranks that wait for their
// exchanges in pairs of passes lose more than that.
TEST_F(PipelineCost, InterleavingNarrowsTheBubble) {
  const PipelineShape plain{4, 1, 16}, chunked{4, 2, 16};
  PipelineTimes half = times_of(chunked, 0);
  for (StageTime& stage : half.stages) stage = {0.5, 1.0};
  const RankEnds one = simulated("sched-1f1b", plain, times_of(plain, 0)),
                 two = simulated("sched-interleaved", chunked, half);
  const double ideal = 16 * 3.0;
  EXPECT_GE(*std::ranges::max_element(two), ideal + 3 * 3.0 / 2);
  EXPECT_LT(*std::ranges::max_element(two), *std::ranges::max_element(one));
}

// F of rank 0, the transfer, F and B of rank 1, the transfer, B of rank 0.
TEST_F(PipelineCost, TransfersOfOneMicrobatchAreOnTheCriticalPath) {
  const PipelineShape shape{2, 1, 1};
  PipelineTimes times = times_of(shape, 0.25);
  EXPECT_DOUBLE_EQ(simulated("sched-1f1b", shape, times).front(), 6 + 2 * 0.25);
  times.links[0].latency_s = 0.5;
  EXPECT_DOUBLE_EQ(simulated("sched-1f1b", shape, times).front(), 6 + 2 * 0.75);
  times.links[0].gather_s = 0.125;
  EXPECT_DOUBLE_EQ(simulated("sched-1f1b", shape, times, Boundaries::scattered).front(), 6 + 2 * 0.75 + 2 * 0.125);
}

// Rank 0 is held until rank 1 has posted its receive: after F and B of the first microbatch.
TEST_F(PipelineCost, ASendHoldsItsRankUntilItIsReceived) {
  const PipelineShape shape{2, 1, 2};
  PipelineTimes times = times_of(shape, 0.25);
  times.stages[1] = {10, 20};
  // F0, transfer; rank 1: F0 B0, then both exchange; F1 B1 of rank 1, transfer, B1 of rank 0.
  EXPECT_DOUBLE_EQ(simulated("sched-1f1b", shape, times).front(), 1 + 0.25 + 30 + 0.25 + 30 + 0.25 + 2);
}

TEST_F(PipelineCost, ExtrapolationEqualsTheFullRun) {
  for (const auto& [scheduler, chunks] : {std::pair("sched-1f1b", 1), std::pair("sched-interleaved", 3)})
    for (const int p : {2, 4, 6})
      for (const int periods : {3, 4, 5, 11}) {
        const PipelineShape shape{p, chunks, periods * p + (chunks == 1 ? 1 : 0)};
        PipelineTimes times = times_of(shape, 0.07);
        times.stages.front() = {1.1, 2.3};
        times.stages.back() = {1.6, 2.9};
        const RankEnds whole = simulated(scheduler, shape, times), cut = extrapolated(scheduler, shape, times);
        ASSERT_EQ(whole.size(), cut.size());
        for (std::size_t rank = 0; rank < whole.size(); ++rank)
          EXPECT_NEAR(whole[rank], cut[rank], 1e-9 * whole[rank]) << scheduler << ' ' << p << ' ' << periods;
      }
}

// Schedules of p microbatches have pairs of passes whose exchanges would wait for each other.
TEST_F(PipelineCost, StepsOfAsManyMicrobatchesAsRanksRunAllForwardsFirst) {
  for (const int p : {2, 3, 4, 8, 12})
    for (const int chunks : {2, 4})
      for (const int periods : {1, 2, 3}) {
        const PipelineShape shape{p, chunks, periods * p};
        const RankEnds ends = simulated("sched-interleaved", shape, times_of(shape, 0));
        const double last = *std::ranges::max_element(ends), work = 3.0 * chunks * periods * p;
        const double least = work + 3.0 * (p - 1);
        EXPECT_GE(last, least) << p << ' ' << chunks << ' ' << periods;
        if (periods > 1) continue;
        EXPECT_DOUBLE_EQ(last, least) << p << ' ' << chunks;
      }
}

TEST_F(PipelineCost, FasterLinksNeverMakeAStepLonger) {
  const PipelineShape shape{4, 2, 16};
  double before = 0;
  for (const double link : {0.0, 0.01, 0.1, 0.5, 2.0}) {
    const RankEnds ends = simulated("sched-interleaved", shape, times_of(shape, link));
    const double step = *std::ranges::max_element(ends);
    EXPECT_GE(step, before);
    before = step;
  }
}

TEST(ExchangeProgramsTest, HaveOneSetBetweenTwoGroups) {
  const test::LoadedScheduler loaded("sched-1f1b");
  const std::vector<schedule::Program> programs =
      exchange_programs(loaded->rows({2, 1, 2}), Boundaries::whole, PassGroups::passes);
  std::vector<std::string> labels;
  for (ActionId id = 0; id < programs[0].actions().size(); ++id) labels.emplace_back(programs[0].label(id));
  EXPECT_EQ(labels,
            (std::vector<std::string>{"0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0B0", "0RECV_B1", "0B1"}));
}

} // namespace
} // namespace triax::cost
