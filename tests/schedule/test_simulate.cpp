// SPDX-License-Identifier: Apache-2.0
// The simulator, compared with published bubble rates and with a reference simulator; peak memory, and stages with
// different times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "schedule/clock.hpp"
#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "schedule/simulate.hpp"
#include "support/loaded_scheduler.hpp"
#include "triax/error.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using test::schedule_of;
using ::testing::ElementsAre;

Simulation simulated(const Schedule& schedule, const PipelineShape& shape, const PassTimes& times, double link) {
  return simulate(lower(schedule, shape), {std::vector<PassTimes>(static_cast<std::size_t>(shape.stages()), times),
                                           std::vector<double>(static_cast<std::size_t>(shape.stages() - 1), link)});
}
Simulation simulated(const std::string& scheduler, const PipelineShape& shape, const PassTimes& times, double link) {
  return simulated(test::LoadedScheduler(scheduler)->rows(shape), shape, times, link);
}

/// Rows of a data file by model, p and m; the values are the remaining columns.
std::map<std::string, std::vector<double>> table(const std::string& file) {
  std::ifstream in(std::string(SCHEDULE_DATA) + "/" + file);
  EXPECT_TRUE(in) << file;
  std::map<std::string, std::vector<double>> out;
  bool heading = true;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#') || std::exchange(heading, false)) continue;
    std::istringstream cells(line);
    std::string model, p, m, cell;
    std::getline(cells, model, ',');
    std::getline(cells, p, ',');
    std::getline(cells, m, ',');
    std::vector<double>& of = out[text("{} {} {}", model, p, m)];
    of = {std::stod(p), std::stod(m)};
    while (std::getline(cells, cell, ',')) of.push_back(std::stod(cell));
  }
  return out;
}

TEST(Simulate, GivesThePublishedBubbleRatesToAllFourDigits) {
  const auto profiled = table("zero_bubble_table9.csv"), published = table("zero_bubble_table5.csv");
  ASSERT_EQ(published.size(), 6u);
  for (const auto& [key, rates] : published) {
    const std::vector<double>& of = profiled.at(key);
    const PipelineShape shape{static_cast<int>(of[0]), 1, static_cast<int>(of[1])};
    std::size_t column = 2;
    for (const char* scheduler : {"sched-1f1b", "sched-zb-h1", "sched-zb-h2"}) {
      const Simulation simulation = simulated(scheduler, shape, {of[2], of[3], of[4]}, of[5]);
      EXPECT_EQ(std::round(simulation.time_span.bubble_rate() * 1e4), std::round(rates.at(column++) * 1e4))
          << key << ", " << scheduler;
    }
  }
}

struct Shown {
  const char* scheduler;
  PipelineShape shape;
};

/// Also with transfers that take longer than passes.
TEST(Simulate, AgreesWithAClock) {
  const Shown shown[] = {
      {"sched-gpipe", {4, 1, 6}},         {"sched-1f1b", {5, 1, 8}},  {"sched-1f1b", {6, 1, 3}},
      {"sched-interleaved", {4, 3, 8}},   {"sched-zb-h1", {5, 1, 9}}, {"sched-zb-h2", {4, 1, 9}},
      {"sched-zb-v", {4, 2, 9}},          {"sched-zb-v", {5, 2, 3}},  {"sched-breadth-first", {4, 3, 5}},
      {"sched-breadth-first", {5, 2, 2}}, {"sched-zb-v", {1, 2, 3}},  {"sched-1f1b", {1, 1, 1}}};
  for (const auto& [scheduler, shape] : shown) {
    const Schedule schedule = test::LoadedScheduler(scheduler)->rows(shape);
    for (const test::Costs costs :
         {test::Costs{1, 1, 1, 0}, {3, 5, 2, 1}, {2, 1, 4, 7}, {7, 3, 1, 2}, {1, 2, 3, 50}, {5, 4, 6, 0}}) {
      SCOPED_TRACE(text("{}, p = {}, m = {}, link {}", scheduler, shape.pipeline, shape.microbatches, costs.link));
      const test::Measured measured = test::Clock(schedule, shape, costs).run();
      const Simulation simulation =
          simulated(schedule, shape, {1.0 * costs.forward, 1.0 * costs.input, 1.0 * costs.weight}, costs.link);
      EXPECT_EQ(simulation.makespan_ms(), measured.span);
      EXPECT_EQ(simulation.time_span.active, measured.longest_row);
      EXPECT_EQ(simulation.time_span.work, measured.work[0]);
      EXPECT_EQ(simulation.peak_in_flight, measured.in_flight);
    }
  }
}

/// What the actions of the rows take, as "0F0 0-1".
std::vector<std::string> times_of(const std::vector<Program>& programs, const Simulation& simulation,
                                  const std::vector<Kind>& kinds) {
  std::vector<std::string> out;
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    for (std::size_t at = 0; at < programs[rank].actions().size(); ++at)
      if (std::ranges::find(kinds, programs[rank].actions()[at].kind) != kinds.end())
        out.push_back(text("{} {}-{}", programs[rank].label(static_cast<ActionId>(at)),
                           simulation.actions[rank][at].start, simulation.actions[rank][at].end));
  return out;
}

const std::vector<Kind> kPasses = {Kind::forward, Kind::backward, Kind::backward_input, Kind::backward_weight};

TEST(Simulate, ReportsWhenEachActionStartsAndEnds) {
  const PipelineShape shape{2, 1, 2};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1I0 1F1 1I1 1W0 1W1"}), shape);
  // The second stage is slower.
  const Simulation simulation = simulate(programs, {{{1, 2, 3}, {2, 4, 6}}, {0.5}});
  EXPECT_THAT(times_of(programs, simulation, kPasses),
              ElementsAre("0F0 0-1", "0F1 1-2", "0B0 8-13", "0B1 14-19", "1F0 1.5-3.5", "1I0 3.5-7.5", "1F1 7.5-9.5",
                          "1I1 9.5-13.5", "1W0 13.5-19.5", "1W1 19.5-25.5"));
  EXPECT_EQ(simulation.makespan_ms(), 25.5);
  EXPECT_EQ(simulation.time_span.active, 24);
  EXPECT_EQ(simulation.time_span.work, 24); // of the second rank
  EXPECT_EQ(simulation.time_span.bubble_rate(), 0);
}

/// R runs while the gradient is on its way: a stage adds only its backward to the path from the last stage.
TEST(Simulate, RecomputingEarlyShortensTheStep) {
  const PipelineShape shape{4, 1, 8};
  const Schedule schedule = test::LoadedScheduler("sched-1f1b")->rows(shape);
  const Costs costs{std::vector<PassTimes>(4, {1, 1, 1, 1})}; // F, I, W and R
  const Simulation within = simulate(lower(schedule, shape), costs),
                   early = simulate(lower(schedule, shape, Boundaries::whole, Sharding::none, kDefaultPrefetch,
                                          std::vector<bool>(4, true)),
                                    costs);
  EXPECT_EQ(within.makespan_ms(), (8 + 3) * 4); // m + p - 1 times a forward and a backward with its recomputation
  EXPECT_EQ(early.makespan_ms(), within.makespan_ms() - 3 * 1);
  EXPECT_EQ(early.time_span.work, within.time_span.work);
  EXPECT_EQ(early.peak_in_flight, within.peak_in_flight);
}

TEST(Simulate, RecomputationIsAPassOfItsOwn) {
  const PipelineShape shape{2, 1, 1};
  const std::vector<Program> programs = lower(schedule_of(shape, {0, 1}, {"0F0 0B0", "1F0 1I0 1W0"}), shape,
                                              Boundaries::whole, Sharding::none, kDefaultPrefetch, {true, false});
  // Stage 1 recomputes within its input gradient.
  const Simulation simulation =
      simulate(programs, {{{1, 2, 3, 4}, {1, 1, 1, 2}}, {0.5}, {}, std::vector<PassBytes>(2, {10, -6, -4})});
  EXPECT_THAT(times_of(programs, simulation,
                       {Kind::forward, Kind::recompute, Kind::backward, Kind::backward_input, Kind::backward_weight}),
              ElementsAre("0F0 0-1", "0R0 1-5", "0B0 6-11", "1F0 1.5-2.5", "1I0 2.5-5.5", "1W0 5.5-6.5"));
  EXPECT_EQ(simulation.time_span.work, 1 + 4 + 5);
  EXPECT_THAT(simulation.peak_bytes, ElementsAre(10, 10));
}

TEST(Simulate, EveryEdgeHasItsLink) {
  const PipelineShape shape{3, 1, 1};
  const std::vector<Program> programs = lower(schedule_of(shape, {0, 1, 2}, {"0F0 0B0", "1F0 1B0", "2F0 2B0"}), shape);
  const Simulation simulation = simulate(programs, {std::vector<PassTimes>(3, {1, 1, 1}), {1, 5}});
  EXPECT_THAT(times_of(programs, simulation, kPasses),
              ElementsAre("0F0 0-1", "0B0 19-21", "1F0 2-3", "1B0 16-18", "2F0 8-9", "2B0 9-11"));
}

/// Between stages of one rank nothing is sent.
TEST(Simulate, EdgesWithinARankTakeNoTime) {
  const PipelineShape shape{2, 2, 1};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 1, 1, 0}, {"0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"}), shape);
  const Simulation simulation = simulate(programs, {std::vector<PassTimes>(4, {1, 1, 1}), {10, 1000, 30}});
  EXPECT_EQ(simulation.makespan_ms(), 4 * 3 + 2 * (10 + 30));
}

/// Each rank waits for the reductions of all ranks before its optimizer step.
TEST(Simulate, AStepEndsWithReductionsAndTheOptimizer) {
  const PipelineShape shape{2, 1, 1};
  const std::vector<Program> programs = lower(schedule_of(shape, {0, 1}, {"0F0 0B0", "1F0 1B0"}), shape);
  const Simulation simulation =
      simulate(programs, {.times = std::vector<PassTimes>(2, {1, 1, 1}), .stages = {{3, 1}, {20, 4}}});
  EXPECT_THAT(times_of(programs, simulation, {Kind::reduce_grad, Kind::opt_step}),
              ElementsAre("0REDUCE_GRAD 6-9", "0OPT_STEP 24-25", "1REDUCE_GRAD 4-24", "1OPT_STEP 24-28"));
  EXPECT_EQ(simulation.makespan_ms(), 6);
  EXPECT_EQ(simulation.step_ms, 28);
}

/// The gradients of a chunk are reduced while the backward of an earlier chunk runs, and before those of that chunk.
TEST(Simulate, ReductionsOfARankRunBesidePassesAndOneAfterAnother) {
  const PipelineShape shape{1, 2, 1};
  const std::vector<Program> programs = lower(schedule_of(shape, {0, 0}, {"0F0 1F0 1B0 0B0"}), shape);
  const Simulation simulation =
      simulate(programs, {.times = std::vector<PassTimes>(2, {1, 1, 1}), .stages = {{5, 1}, {5, 1}}});
  EXPECT_THAT(
      times_of(programs, simulation, {Kind::backward, Kind::reduce_grad, Kind::opt_step}),
      ElementsAre("1B0 2-4", "1REDUCE_GRAD 4-9", "0B0 4-6", "0REDUCE_GRAD 9-14", "0OPT_STEP 14-15", "1OPT_STEP 15-16"));
  EXPECT_EQ(simulation.step_ms, 16);
}

/// The gathers of a rank follow one another; a pass waits for that of its stage only.
TEST(Simulate, WeightsAreGatheredBesidePasses) {
  const PipelineShape shape{1, 2, 1};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 0}, {"0F0 1F0 1B0 0B0"}), shape, Boundaries::whole, Sharding::parameters, 1);
  const Simulation simulation =
      simulate(programs, {.times = std::vector<PassTimes>(2, {1, 1, 1}), .stages = {{0, 0, 2}, {0, 0, 4}}});
  EXPECT_THAT(times_of(programs, simulation, {Kind::unshard, Kind::forward, Kind::backward}),
              ElementsAre("0UNSHARD 0-2", "1UNSHARD 2-6", "0F0 2-3", "1F0 6-7", "1B0 7-9", "0B0 9-11"));
  EXPECT_EQ(simulation.step_ms, 11);
}

TEST(Simulate, UpdatedParametersAreGatheredAfterTheOptimizer) {
  const PipelineShape shape{1, 2, 1};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 0}, {"0F0 1F0 1B0 0B0"}), shape, Boundaries::whole, Sharding::states);
  const Simulation simulation =
      simulate(programs, {.times = std::vector<PassTimes>(2, {1, 1, 1}), .stages = {{0, 1, 3}, {0, 1, 3}}});
  EXPECT_THAT(times_of(programs, simulation, {Kind::opt_step, Kind::gather_param}),
              ElementsAre("0OPT_STEP 6-7", "0GATHER_PARAM 7-10", "1OPT_STEP 10-11", "1GATHER_PARAM 11-14"));
}

TEST(Simulate, TheBubbleIsOverTheActiveTimeAndOverTheWork) {
  const Simulation simulation = simulated("sched-gpipe", {4, 1, 6}, {1, 1, 1}, 0);
  EXPECT_EQ(simulation.time_span.active, 27);
  EXPECT_EQ(simulation.time_span.work, 18);
  EXPECT_DOUBLE_EQ(simulation.time_span.bubble_rate(), 9.0 / 27);
  EXPECT_DOUBLE_EQ(simulation.time_span.bubble_over_work(), 0.5);
}

TEST(Simulate, NoBubbleIsNegativeByRounding) {
  for (const double time : {0.1, 0.3, 1e-9, 7.7e7})
    for (int m = 1; m < 40; ++m) {
      EXPECT_GE(simulated("sched-1f1b", {1, 1, m}, {time, time, time}, 0).time_span.bubble_rate(), 0);
      EXPECT_LT(simulated("sched-1f1b", {1, 1, m}, {time, time, time}, 0).time_span.bubble_rate(), 1e-13);
    }
}

/// Peak bytes by rank: a forward keeps `forward` bytes, of which `weight` remain until the weight gradient.
std::vector<std::int64_t> peak_bytes(const std::string& scheduler, const PipelineShape& shape, std::int64_t forward,
                                     std::int64_t weight) {
  const std::vector<Program> programs = lower(test::LoadedScheduler(scheduler)->rows(shape), shape);
  const auto stages = static_cast<std::size_t>(shape.stages());
  return simulate(programs, {.times = std::vector<PassTimes>(stages, {1, 1, 1}),
                             .bytes = std::vector<PassBytes>(stages, {forward, weight - forward, -weight})})
      .peak_bytes;
}

/// Worker i = 1..p: (p-i+1) M_B + (i-1) M_W with ZB-H1, (2p-2i+1) M_B + (2i-2) M_W with ZB-H2 (arXiv 2401.10241,
/// section 2.3 and table 2).
TEST(Simulate, GivesThePublishedActivationsOfEveryWorker) {
  constexpr std::int64_t kForward = 1000, kWeight = 301;
  for (const int p : {1, 2, 3, 5, 8}) {
    const std::vector<std::int64_t> h1 = peak_bytes("sched-zb-h1", {p, 1, 3 * p}, kForward, kWeight);
    const std::vector<std::int64_t> h2 = peak_bytes("sched-zb-h2", {p, 1, 3 * p}, kForward, kWeight);
    const std::vector<std::int64_t> plain = peak_bytes("sched-1f1b", {p, 1, 3 * p}, kForward, kWeight);
    const std::vector<std::int64_t> vee = peak_bytes("sched-zb-v", {p, 2, 3 * p}, kForward, kWeight);
    for (int i = 1; i <= p; ++i) {
      SCOPED_TRACE(text("p = {}, worker {}", p, i));
      const auto at = static_cast<std::size_t>(i - 1);
      EXPECT_EQ(h1[at], (p - i + 1) * kForward + (i - 1) * kWeight);
      EXPECT_EQ(h2[at], (2 * p - 2 * i + 1) * kForward + (2 * i - 2) * kWeight);
      EXPECT_EQ(plain[at], (p - i + 1) * kForward);
      EXPECT_LE(vee[at], 2 * p * kForward); // p microbatches of both chunks
    }
  }
}

TEST(Simulate, NamesTheFirstActionThatExceedsTheCap) {
  const PipelineShape shape{2, 1, 3};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 1}, {"0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"}), shape);
  Costs costs{
      .times = std::vector<PassTimes>(2, {1, 1, 1}), .bytes = std::vector<PassBytes>(2, {10, -6, -4}), .cap_bytes = 20};
  EXPECT_FALSE(simulate(programs, costs).over_cap);
  costs.cap_bytes = 19;
  const Simulation simulation = simulate(programs, costs);
  ASSERT_TRUE(simulation.over_cap);
  EXPECT_EQ(simulation.over_cap->rank, 0);
  EXPECT_STREQ(programs[0].label(simulation.over_cap->action), "0F1");
  EXPECT_THAT(simulation.peak_bytes, ElementsAre(20, 10));
}

TEST(Simulate, AsksForTheTimesOfEveryStage) {
  const PipelineShape shape{2, 1, 1};
  const std::vector<Program> programs = lower(schedule_of(shape, {0, 1}, {"0F0 0B0", "1F0 1B0"}), shape);
  EXPECT_THROW(simulate(programs, {{{1, 1, 1}}}), Error);
  const std::vector<PassTimes> times(2, {1, 1, 1});
  EXPECT_THROW(simulate(programs, {.times = times, .link_ms = {1, 1}}), Error);
  EXPECT_THROW(simulate(programs, {.times = times, .stages = {{1, 1}}}), Error);
  EXPECT_THROW(simulate(programs, {.times = times, .bytes = {{1, 0, -1}}}), Error);
}

TEST(Simulate, ForwardsAlone) {
  const PipelineShape shape{3, 1, 4};
  const std::vector<Program> programs = lower_forward_only(test::LoadedScheduler("sched-1f1b")->rows(shape), shape);
  const Simulation simulation = simulate(programs, {std::vector<PassTimes>(3, {2, 9, 9})});
  EXPECT_EQ(simulation.makespan_ms(), 12);
  EXPECT_EQ(simulation.time_span.work, 8);
}

} // namespace
