// SPDX-License-Identifier: Apache-2.0
// Timelines: created from the simulator, their totals, and the activations that a rank keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "schedule/timeline.hpp"
#include "support/error_of.hpp"
#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using triax::test::error_of;

struct Planned {
  Simulation simulation;
  Timeline timeline;
};

Planned plan(const Schedule& schedule, const PipelineShape& shape, const PassTimes& times, double link) {
  const std::vector<Program> programs = lower(schedule, shape);
  const auto stages = static_cast<std::size_t>(shape.stages());
  Planned out{simulate(programs, {std::vector<PassTimes>(stages, times), std::vector<double>(stages - 1, link)}), {}};
  out.timeline = planned(programs, out.simulation, shape, Timeline::Unit::ms);
  return out;
}

std::vector<std::string> result(const std::vector<Span>& row) {
  std::vector<std::string> out;
  for (const Span& span : row)
    out.push_back(text("{} {}-{}", action_text(span.kind, span.stage, span.microbatch), span.start, span.end));
  return out;
}

TEST(Timeline, HasThePassesAloneWhenTheyRun) {
  const PipelineShape shape{2, 1, 2};
  const Timeline timeline =
      plan(test::schedule_of(shape, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), shape, {2, 3, 1}, 0.5).timeline;
  EXPECT_THAT(result(timeline.rows[0]), ElementsAre("0F0 0-2", "0F1 2-4", "0B0 9-13", "0B1 15-19"));
  EXPECT_THAT(result(timeline.rows[1]), ElementsAre("1F0 2.5-4.5", "1B0 4.5-8.5", "1F1 8.5-10.5", "1B1 10.5-14.5"));
  EXPECT_EQ(timeline.stage_map, StageMap({0, 1}));
}

struct Simulated {
  const char* scheduler;
  PipelineShape shape;
};

TEST(Timeline, AgreesWithTheSimulator) {
  for (const Simulated& of :
       {Simulated{"sched-gpipe", {4, 1, 8}}, Simulated{"sched-1f1b", {5, 1, 7}},
        Simulated{"sched-interleaved", {4, 3, 8}}, Simulated{"sched-breadth-first", {3, 2, 5}},
        Simulated{"sched-zb-h1", {4, 1, 9}}, Simulated{"sched-zb-h2", {4, 1, 9}}, Simulated{"sched-zb-v", {3, 2, 7}}}) {
    SCOPED_TRACE(of.scheduler);
    const test::LoadedScheduler scheduler(of.scheduler);
    const auto [simulation, timeline] = plan(scheduler->rows(of.shape), of.shape, {1.1, 1.3, 0.7}, 0.2);
    const TimeSpan result = time_span(timeline);
    EXPECT_NEAR(result.length(), simulation.makespan_ms(), 1e-9);
    EXPECT_NEAR(result.active, simulation.time_span.active, 1e-9);
    EXPECT_NEAR(result.work, simulation.time_span.work, 1e-9);
    EXPECT_NEAR(result.bubble_rate(), simulation.time_span.bubble_rate(), 1e-12);
    EXPECT_NEAR(result.bubble_over_work(), simulation.time_span.bubble_over_work(), 1e-12);
    for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank)
      EXPECT_EQ(peak_of(in_flight(timeline.rows[rank])), simulation.peak_in_flight[rank]) << "rank " << rank;
  }
}

TEST(Timeline, KeepsTheInputsOfAWeightGradientInFlight) {
  const std::vector<Span> row = {{Kind::forward, 0, 0, 0, 1},
                                 {Kind::forward, 0, 1, 1, 2},
                                 {Kind::backward_input, 0, 0, 3, 4},
                                 {Kind::backward, 0, 1, 4, 6},
                                 {Kind::backward_weight, 0, 0, 6, 7}};
  std::vector<std::string> steps;
  for (const InFlight& now : in_flight(row)) steps.push_back(text("{}: {} + {}", now.from, now.whole, now.weight));
  EXPECT_THAT(steps, ElementsAre("0: 1 + 0", "1: 2 + 0", "4: 1 + 1", "6: 0 + 1", "7: 0 + 0"));
  EXPECT_EQ(peak_of(in_flight(row)), 2);
}

Timeline of_one_rank(std::vector<Span> row) {
  return {{1, 1, 1}, StageMap({0}), Timeline::Unit::ms, {std::move(row)}};
}

TEST(Timeline, TheBubbleIsThatOfPasses) {
  const TimeSpan result = time_span(
      of_one_rank({{Kind::forward, 0, 0, 10, 11}, {Kind::backward, 0, 0, 13, 15}, {Kind::opt_step, 0, -1, 15, 20}}));
  EXPECT_EQ(result.first, 10);
  EXPECT_EQ(result.last, 20);
  EXPECT_EQ(result.active, 5);
  EXPECT_EQ(result.work, 3);
  EXPECT_DOUBLE_EQ(result.bubble_rate(), 0.4);
  EXPECT_EQ(time_span(Timeline{}).bubble_rate(), 0);
}

TEST(Timeline, ReportsInvalidPasses) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error_of([] {
                time_span(of_one_rank({{Kind::forward, 0, 0, 0, 1}, {Kind::backward, 0, 0, 3, 2}}));
              }),
              HasSubstr("rank 0, action 1, 0B0: it runs from 3 to 2"));
  EXPECT_THAT(error_of([nan] { time_span(of_one_rank({{Kind::forward, 0, 0, 0, nan}})); }), HasSubstr("action 0, 0F0"));
  EXPECT_THAT(error_of([] {
                time_span(of_one_rank({{Kind::forward, 1, 0, 0, 1}}));
              }),
              HasSubstr("stage 1 does not exist"));
  EXPECT_THAT(error_of([] {
                time_span(of_one_rank({{Kind::forward, -1, 0, 0, 1}}));
              }),
              HasSubstr("stage -1 does not exist"));
}

} // namespace
