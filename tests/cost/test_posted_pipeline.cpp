// SPDX-License-Identifier: Apache-2.0
// The time of a step whose transfers are posted: the simulator of programs, transfers that share a NIC, extrapolation.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "cost/posted_pipeline.hpp"
#include "schedule/lower.hpp"
#include "schedule/simulate.hpp"
#include "support/loaded_scheduler.hpp"

namespace triax::cost {
namespace {

struct Case {
  const char* scheduler;
  int chunks;
};
constexpr Case kCases[] = {{"sched-gpipe", 1}, {"sched-1f1b", 1},  {"sched-interleaved", 2}, {"sched-breadth-first", 3},
                           {"sched-zb-h1", 1}, {"sched-zb-h2", 1}, {"sched-zb-v", 2}};

PostedTimes uneven_times(const PipelineShape& shape, double seconds, double latency) {
  PostedTimes out;
  for (int stage = 0; stage < shape.stages(); ++stage)
    out.stages.push_back({1 + 0.125 * (stage % 3), 1.25, 0.75, 0.5 + 0.25 * stage, 0.25});
  out.links.assign(static_cast<std::size_t>(shape.stages() - 1), {latency, seconds, 0});
  return out;
}

PostedRows rows_of(const char* scheduler, const PipelineShape& shape) {
  const test::LoadedScheduler loaded(scheduler);
  return {loaded->rows(shape), shape};
}

/// Of a split backward, the input gradient ends before the weight gradient: the last rank makes it at once.
TEST(PostedPipeline, MicrobatchesInFlightAreCountedToEachPass) {
  const std::vector<int> input = {4, 3, 2, 1}, weight = {4, 4, 4, 4};
  const PostedRows split = rows_of("sched-zb-h1", {4, 1, 12}), whole = rows_of("sched-1f1b", {4, 1, 12});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(split.until_input[rank][rank], input[rank]) << rank;
    EXPECT_EQ(split.until_weight[rank][rank], weight[rank]) << rank;
    EXPECT_EQ(whole.until_input[rank][rank], input[rank]) << rank;
    EXPECT_EQ(whole.until_weight[rank][rank], input[rank]) << rank;
  }
}

/// A slot is free after the next pass only, so programs have one more at most.
TEST(PostedPipeline, StagesThatAccumulateTakeTheSlotsOfPrograms) {
  for (const auto& [scheduler, chunks] : kCases) {
    const PipelineShape shape{3, chunks, 9};
    const test::LoadedScheduler loaded(scheduler);
    const Schedule schedule = loaded->rows(shape);
    const PostedRows rows(schedule, shape);
    const std::vector<schedule::Program> programs =
        schedule::lower(schedule, shape, schedule::Boundaries::whole, schedule::Sharding::gradients);
    for (const schedule::Program& program : programs) {
      const int counted = rows.accumulating[static_cast<std::size_t>(program.rank())];
      EXPECT_LE(counted, program.accumulators()) << scheduler;
      EXPECT_GE(counted + 1, program.accumulators()) << scheduler;
    }
  }
}

TEST(PostedPipeline, IsTheSimulatorOfProgramsWhereNoMessageWaitsForAnother) {
  for (const auto& [scheduler, chunks] : kCases)
    for (const int prefetch : {-1, 0, 1, 2}) {
      const PipelineShape shape{3, chunks, 9};
      PostedTimes times = uneven_times(shape, 0, 0.375);
      times.prefetch = prefetch;
      std::vector<bool> recomputes;
      for (int stage = 0; stage < shape.stages(); ++stage) {
        recomputes.push_back(prefetch > 0 && stage % 2 == 0);
        if (recomputes.back()) times.stages[static_cast<std::size_t>(stage)].recompute_s = 0.875;
      }
      const test::LoadedScheduler loaded(scheduler);
      const Schedule schedule = loaded->rows(shape);
      schedule::Costs costs;
      for (const PostedTimes::Stage& of : times.stages) {
        costs.times.push_back({of.forward_s, of.input_s, of.weight_s, of.recompute_s});
        costs.stages.push_back({of.reduce_s, 0, of.weights_s});
      }
      for (const LinkTime& link : times.links) costs.link_ms.push_back(link.latency_s);
      const auto sharding = prefetch < 0 ? schedule::Sharding::none : schedule::Sharding::parameters;
      const schedule::Simulation simulated = schedule::simulate(
          schedule::lower(schedule, shape, schedule::Boundaries::whole, sharding, std::max(prefetch, 0), recomputes),
          costs);
      const PostedEnds ends = time_posted(PostedRows(schedule, shape), times);
      EXPECT_DOUBLE_EQ(*std::ranges::max_element(ends.passes), simulated.time_span.first + simulated.time_span.length())
          << scheduler << " prefetch " << prefetch;
      EXPECT_DOUBLE_EQ(*std::ranges::max_element(ends.reductions), simulated.step_ms)
          << scheduler << " prefetch " << prefetch;
    }
}

// F0 and F1 of rank 0 take one each, and each message takes two: F1's leaves when F0's is sent.
TEST(PostedPipeline, MessagesOfARankShareItsCard) {
  const PipelineShape shape{2, 1, 2};
  PostedTimes times;
  times.stages = {{1, 0, 0}, {0, 0, 0}};
  times.links = {{0.5, 2, 0}};
  const PostedEnds ends = time_posted(rows_of("sched-gpipe", shape), times);
  EXPECT_DOUBLE_EQ(ends.passes[1], 1 + 2 + 2 + 0.5);
  EXPECT_DOUBLE_EQ(ends.passes[0], 1 + 2 + 2 + 0.5 + 2 + 2 + 0.5); // and both come back
}

TEST(PostedPipeline, GatheredWeightsAreWaitedFor) {
  const PipelineShape shape{1, 1, 1};
  PostedTimes times;
  times.stages = {{1, 1, 1, 0, 4}};
  EXPECT_DOUBLE_EQ(time_posted(rows_of("sched-1f1b", shape), times).passes[0], 3);
  times.prefetch = 1;
  EXPECT_DOUBLE_EQ(time_posted(rows_of("sched-1f1b", shape), times).passes[0], 7);
}

/// What a stage recomputes early is off the path of the gradients from the last stage.
TEST(PostedPipeline, RecomputingEarlyShortensTheStep) {
  const PipelineShape shape{4, 1, 8};
  PostedTimes within, early;
  within.stages.assign(4, {1, 1 + 1, 1});
  early.stages.assign(4, {1, 1, 1, 0, 0, 1});
  within.links = early.links = std::vector<LinkTime>(3);
  const PostedRows rows = rows_of("sched-1f1b", shape);
  EXPECT_DOUBLE_EQ(time_posted(rows, within).passes[0], (8 + 3) * 4);
  EXPECT_DOUBLE_EQ(time_posted(rows, early).passes[0], (8 + 3) * 4 - 3 * 1);
}

TEST(PostedPipeline, ExtrapolationEqualsTheFullRun) {
  for (const Case& of : kCases)
    for (const int p : {1, 2, 4, 6})
      for (const int prefetch : {-1, 1})
        for (const int periods : {4, 5, 9, 40}) {
          const PipelineShape shape{p, of.chunks, periods * p};
          PostedTimes times = uneven_times(shape, 0.0625, 0.125);
          times.prefetch = prefetch;
          std::list<PostedRows> kept;
          const auto rows = [&](const PipelineShape& cut) { return &kept.emplace_back(rows_of(of.scheduler, cut)); };
          const PostedEnds whole = time_posted(rows_of(of.scheduler, shape), times),
                           few = posted_ends(rows, shape, times);
          const double end = *std::ranges::max_element(whole.reductions);
          EXPECT_NEAR(*std::ranges::max_element(few.reductions), end, 1e-9 * end)
              << of.scheduler << " p " << p << " prefetch " << prefetch << " periods " << periods;
        }
}

/// The same numbers, not only nearly: a walk that is kept gives a search the same times as a new one.
TEST(PostedPipeline, KeptPassesGiveTheTimesOfANewWalk) {
  for (const Case& of : kCases)
    for (const int periods : {2, 9, 40}) {
      const PipelineShape shape{4, of.chunks, periods * 4};
      std::list<std::pair<int, PostedRows>> made;
      const auto rows = [&](const PipelineShape& cut) -> const PostedRows* {
        for (const auto& [microbatches, kept] : made)
          if (microbatches == cut.microbatches) return &kept;
        return &made.emplace_back(cut.microbatches, rows_of(of.scheduler, cut)).second;
      };
      PostedTimes times = uneven_times(shape, 0.0625, 0.125);
      PostedPasses passes(times);
      for (const double reduce_s : {0.0, 0.5, 3.0, 100.0, 0.5}) {
        std::vector<double> reductions;
        for (PostedTimes::Stage& stage : times.stages)
          reductions.push_back(stage.reduce_s = reduce_s * static_cast<double>(1 + reductions.size() % 3));
        const PostedEnds kept = passes.ends(rows, shape, reductions), again = posted_ends(rows, shape, times);
        EXPECT_EQ(kept.passes, again.passes) << of.scheduler << ' ' << periods << ' ' << reduce_s;
        EXPECT_EQ(kept.reductions, again.reductions) << of.scheduler << ' ' << periods << ' ' << reduce_s;
      }
    }
}

/// Each tensor is written before it is read, once, and its slot holds no other until then.
TEST(PostedPipeline, PassesFollowWhatTheyRead) {
  for (const Case& of : kCases) {
    const PostedRows rows = rows_of(of.scheduler, {4, of.chunks, 12});
    std::vector<bool> is_written(static_cast<std::size_t>(rows.slots), false);
    for (const PostedRows::Pass& pass : rows.passes) {
      if (pass.reads >= 0) {
        ASSERT_TRUE(is_written[static_cast<std::size_t>(pass.reads)]) << of.scheduler;
        is_written[static_cast<std::size_t>(pass.reads)] = false;
      }
      if (pass.writes < 0) continue;
      ASSERT_FALSE(is_written[static_cast<std::size_t>(pass.writes)]) << of.scheduler;
      is_written[static_cast<std::size_t>(pass.writes)] = true;
    }
    EXPECT_EQ(std::ranges::count(is_written, true), 0) << of.scheduler;
    EXPECT_EQ(rows.ended_stages.size(), static_cast<std::size_t>(rows.shape.stages())) << of.scheduler;
  }
}

TEST(PostedPipeline, RowsThatWaitForEachOtherAreRefused) {
  Schedule schedule({2, 1, 1}, {0, 1});
  schedule.row(0) = {backward(0, 0), forward(0, 0)};
  schedule.row(1) = {forward(1, 0), backward(1, 0)};
  EXPECT_THROW(PostedRows(schedule, {2, 1, 1}), Error);
}

TEST(PostedPipeline, SlowerLinksNeverMakeAStepShorter) {
  for (const auto& [scheduler, chunks] : kCases) {
    const PipelineShape shape{4, chunks, 16};
    double before = 0;
    for (const double link : {0.0, 0.01, 0.1, 0.5, 2.0}) {
      const PostedEnds ends = time_posted(rows_of(scheduler, shape), uneven_times(shape, link, link));
      const double end = *std::ranges::max_element(ends.passes);
      EXPECT_GE(end, before) << scheduler << ' ' << link;
      before = end;
    }
  }
}

} // namespace
} // namespace triax::cost
