// SPDX-License-Identifier: Apache-2.0
// Published bubbles and activation counts for every shape up to p = 16, m = 64, v = 4, compared with a reference
// simulator that shares nothing with the engine.
//
// Bubbles: GPipe (arXiv 1811.06965), 1F1B (SC'21, arXiv 2104.04473, section 2.2.1), interleaved 1F1B (2.2.2), and the
// zero-bubble schedules (arXiv 2401.10241, tables 1 and 2, section 6, and appendix B for few microbatches).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "csv/program_csv.hpp"
#include "schedule/clock.hpp"
#include "schedule/lower.hpp"
#include "schedule/timing.hpp"
#include "schedule/verify.hpp"
#include "support/loaded_scheduler.hpp"
#include "support/sanitizers.hpp"

namespace {
using namespace triax;
using test::Clock;
using test::Costs;
using test::Measured;

constexpr int kMaxPipeline = test::kSanitized ? 6 : 16, kMaxMicrobatches = test::kSanitized ? 16 : 64, kMaxChunks = 4;
constexpr int kMaxVerified = 192; // stages times microbatches up to which programs are verified too

/// With lowering's times: F takes 1, B takes 2.
std::int64_t engine_span(const Schedule& schedule) {
  std::vector<std::vector<Action>> rows;
  for (int rank = 0; rank < schedule.ranks(); ++rank) rows.push_back(schedule.row(rank));
  std::int64_t span = 0;
  for (const auto& row : schedule::end_times(rows, schedule::StageMap(schedule.stage_rank().at(0))))
    span = std::max(span, row.back());
  return span;
}

/// Expected values of a schedule. Bubble: idle time of the rank with the longest interval from first start to last end;
/// empty if no formula is known. In flight: by rank.
struct Published {
  std::function<std::optional<int>(const PipelineShape&, const Costs&)> bubble;
  std::function<int(const PipelineShape&, int)> in_flight;
  std::vector<Costs> costs = {{1, 1, 1}, {3, 2, 1}, {3, 3, 2}};
  /// True if one rank is active from the first forward to the last backward.
  bool spans_the_step = true;
};

class Formulas : public ::testing::TestWithParam<int> {
 protected:
  void check(const Scheduler& scheduler, const PipelineShape& shape, const Published& published) {
    SCOPED_TRACE(text("p = {}, v = {}, m = {}", shape.pipeline, shape.chunks, shape.microbatches));
    ASSERT_TRUE(scheduler.supports(shape).empty()) << scheduler.supports(shape).front().message;
    const Schedule schedule = scheduler.rows(shape);
    const std::vector<schedule::Violation> violations = schedule::verify(schedule, shape);
    ASSERT_TRUE(violations.empty()) << violations.front().reason();
    for (const Costs& costs : published.costs) {
      SCOPED_TRACE(text("F {}, I {}, W {}", costs.forward, costs.input, costs.weight));
      const Measured measured = Clock(schedule, shape, costs).run();
      const int ideal = shape.microbatches * shape.chunks * costs.pass();
      const std::optional<int> bubble = published.bubble(shape, costs);
      if (bubble) {
        EXPECT_EQ(measured.longest_row - ideal, *bubble);
      }
      if (published.spans_the_step) {
        EXPECT_EQ(measured.longest_row, measured.span);
      }
      for (int rank = 0; rank < shape.pipeline; ++rank) {
        EXPECT_EQ(measured.work[static_cast<std::size_t>(rank)], ideal);
        EXPECT_EQ(measured.in_flight[static_cast<std::size_t>(rank)], published.in_flight(shape, rank))
            << "rank " << rank;
      }
    }
    EXPECT_EQ(engine_span(schedule), Clock(schedule, shape, {1, 1, 1}).run().span);
    if (shape.stages() * shape.microbatches <= kMaxVerified) check_programs(schedule, shape);
  }

  /// Verifies the programs with the weakest guarantees of backends.
  void check_programs(const Schedule& schedule, const PipelineShape& shape) {
    const schedule::Assumptions least = schedule::everywhere(schedule::kMinGuarantee);
    for (const auto boundaries : {schedule::Boundaries::whole, schedule::Boundaries::scattered}) {
      for (const schedule::Violation& violation :
           schedule::verify(schedule::lower(schedule, shape, boundaries), {shape}, least))
        ADD_FAILURE() << violation.reason();
      for (const schedule::Violation& violation :
           schedule::verify(schedule::lower_forward_only(schedule, shape, boundaries), {shape, true}, least))
        ADD_FAILURE() << violation.reason();
    }
  }
};

/// Bubble: (p-1) forwards and backwards of one chunk, for m*v of work. So bubble / work = (p-1)/(v*m); the time of
/// a chunk is 1/v of a rank's. For GPipe and 1F1B, v is 1.
std::optional<int> ramps(const PipelineShape& shape, const Costs& costs) {
  return (shape.pipeline - 1) * costs.pass();
}

/// min(m, p-i) on stage i: p-1-i forwards of the warm-up, and one in the steady state.
int one_f_one_b_in_flight(const PipelineShape& shape, int rank) {
  return std::min(shape.microbatches, shape.pipeline - rank);
}

/// In chunks, as Megatron-LM counts: 2(p-1-i) + (v-1)g forwards of the warm-up with groups of g microbatches, and one
/// in the steady state. If a step has fewer passes than that, all of them are in flight.
int interleaved_in_flight(const PipelineShape& shape, int rank, int group) {
  return std::min(shape.microbatches * shape.chunks, 2 * (shape.pipeline - 1 - rank) + (shape.chunks - 1) * group + 1);
}

/// Bubble if microbatches are too few to fill the pipeline: (m+p-1)(F+I) + W in total, minus the work, with the times
/// of all chunks of a rank.
int few_microbatches(const PipelineShape& shape, const Costs& costs) {
  const int p = shape.pipeline, m = shape.microbatches;
  return shape.chunks * ((m + p - 1) * (costs.forward + costs.input) + costs.weight - m * costs.pass());
}

/// F and I take at least as long as W.
const std::vector<Costs> kSplitCosts = {{1, 1, 1}, {3, 3, 2}, {5, 6, 3}, {4, 3, 2}};

TEST_P(Formulas, GPipe) {
  const test::LoadedScheduler scheduler("sched-gpipe");
  for (int m = 1; m <= kMaxMicrobatches; ++m)
    check(*scheduler, {GetParam(), 1, m}, {ramps, [](const PipelineShape& shape, int) { return shape.microbatches; }});
}

TEST_P(Formulas, OneForwardOneBackward) {
  const test::LoadedScheduler scheduler("sched-1f1b");
  for (int m = 1; m <= kMaxMicrobatches; ++m) check(*scheduler, {GetParam(), 1, m}, {ramps, one_f_one_b_in_flight});
}

TEST_P(Formulas, Interleaved) {
  const test::LoadedScheduler scheduler("sched-interleaved");
  const int p = GetParam();
  for (int v = 2; v <= kMaxChunks; ++v)
    for (int m = p; m <= kMaxMicrobatches; m += p)
      check(*scheduler, {p, v, m},
            {ramps, [p](const PipelineShape& shape, int rank) { return interleaved_in_flight(shape, rank, p); }});
}

/// Groups of more than p microbatches keep more chunks for the same bubble, also if the last group is smaller.
TEST_P(Formulas, InterleavedInGroups) {
  const int p = GetParam();
  for (const int group : {p + 1, p + 3, 2 * p + 1}) {
    const test::LoadedScheduler scheduler("sched-interleaved", {{"group", group}});
    const Published published{
        ramps, [group](const PipelineShape& shape, int rank) { return interleaved_in_flight(shape, rank, group); }};
    for (int v = 2; v <= kMaxChunks; ++v)
      for (const int m : {group, group + p, 2 * group, 2 * group + p}) check(*scheduler, {p, v, m}, published);
  }
}

/// With fewer microbatches than ranks, each further chunk waits until the first microbatch returns to the first rank.
TEST_P(Formulas, BreadthFirst) {
  const test::LoadedScheduler scheduler("sched-breadth-first");
  const Published published{[](const PipelineShape& shape, const Costs& costs) {
                              const int waits = std::max(0, shape.pipeline - shape.microbatches);
                              return (shape.pipeline - 1 + (shape.chunks - 1) * waits) * costs.pass();
                            },
                            [](const PipelineShape& shape, int) { return shape.microbatches * shape.chunks; }};
  for (int v = 1; v <= kMaxChunks; ++v)
    for (int m = v; m <= kMaxMicrobatches; m += v) check(*scheduler, {GetParam(), v, m}, published);
}

TEST_P(Formulas, ZeroBubbleH1) {
  const test::LoadedScheduler scheduler("sched-zb-h1");
  const Published published{
      [](const PipelineShape& shape, const Costs& costs) {
        const int p = shape.pipeline;
        if (shape.microbatches <= p) return few_microbatches(shape, costs);
        return (p - 1) * (costs.forward + costs.input - costs.weight);
      },
      [](const PipelineShape& shape, int) { return std::min(shape.microbatches, shape.pipeline); }, kSplitCosts, false};
  for (int m = 1; m <= kMaxMicrobatches; ++m) check(*scheduler, {GetParam(), 1, m}, published);
}

TEST_P(Formulas, ZeroBubbleH2) {
  const test::LoadedScheduler scheduler("sched-zb-h2");
  const Published published{
      [](const PipelineShape& shape, const Costs& costs) -> std::optional<int> {
        const int p = shape.pipeline;
        if (shape.microbatches <= p) return few_microbatches(shape, costs);
        if (shape.microbatches < 2 * p - 1) return {};
        return (p - 1) * (costs.forward + costs.input - 2 * costs.weight);
      },
      [](const PipelineShape& shape, int) { return std::min(shape.microbatches, 2 * shape.pipeline - 1); }, kSplitCosts,
      false};
  for (int m = 1; m <= kMaxMicrobatches; ++m) check(*scheduler, {GetParam(), 1, m}, published);
}

/// No bubble at equal times, and as many activations as 1F1B: p microbatches of two chunks on every rank.
TEST_P(Formulas, ZeroBubbleV) {
  const test::LoadedScheduler scheduler("sched-zb-v");
  const int p = GetParam();
  const Published published{[](const PipelineShape&, const Costs&) { return 0; },
                            [](const PipelineShape& shape, int) { return 2 * shape.pipeline; },
                            {{1, 1, 1}},
                            p == 1};
  for (int m = 2 * p - 1; m <= kMaxMicrobatches; ++m) check(*scheduler, {p, 2, m}, published);
}

TEST_P(Formulas, ZeroBubbleVOfFewMicrobatches) {
  const test::LoadedScheduler scheduler("sched-zb-v");
  const int p = GetParam();
  for (int m = 1; m < 2 * p - 1; ++m) {
    const PipelineShape shape{p, 2, m};
    const Schedule schedule = scheduler->rows(shape);
    ASSERT_TRUE(schedule::verify(schedule, shape).empty());
    const Measured measured = Clock(schedule, shape, {1, 1, 1}).run();
    EXPECT_EQ(*std::ranges::max_element(measured.in_flight), std::min(2 * m, 2 * p));
    if (m <= p) {
      EXPECT_EQ(measured.longest_row - 2 * m * 3, few_microbatches(shape, {1, 1, 1}));
    }
    if (shape.stages() * m <= kMaxVerified) check_programs(schedule, shape);
  }
}

/// 1 + (p-1)/(p*v) times the activations of 1F1B's first rank, p*v chunks (Korthikanti et al., arXiv 2205.05198). This
/// needs that many passes: m >= 2p.
TEST_P(Formulas, InterleavingHoldsThePublishedShareMore) {
  const int p = GetParam();
  const test::LoadedScheduler scheduler("sched-interleaved");
  for (int v = 2; v <= kMaxChunks; ++v) {
    const PipelineShape shape{p, v, 2 * p};
    const Schedule schedule = scheduler->rows(shape);
    EXPECT_EQ(Clock(schedule, shape, {1, 1, 1}).run().in_flight[0], p * v + p - 1);
  }
}

TEST_P(Formulas, ShapesAreAcceptedOrRefusedByTheirRules) {
  const test::LoadedScheduler gpipe("sched-gpipe"), plain("sched-1f1b"), interleaved("sched-interleaved"),
      breadth_first("sched-breadth-first"), h1("sched-zb-h1"), h2("sched-zb-h2"), vee("sched-zb-v");
  const int p = GetParam();
  for (int v = 1; v <= kMaxChunks; ++v)
    for (int m = 1; m <= kMaxMicrobatches; ++m) {
      SCOPED_TRACE(text("v = {}, m = {}", v, m));
      for (const auto* scheduler : {&gpipe, &plain, &h1, &h2})
        EXPECT_EQ((*scheduler)->supports({p, v, m}).empty(), v == 1);
      EXPECT_EQ(interleaved->supports({p, v, m}).empty(), v > 1 && m % p == 0);
      EXPECT_EQ(vee->supports({p, v, m}).empty(), v == 2);
      EXPECT_TRUE(breadth_first->supports({p, v, m}).empty());
    }
}

INSTANTIATE_TEST_SUITE_P(Pipelines, Formulas, ::testing::Range(1, kMaxPipeline + 1));

TEST(Schedulers, TheSameShapeGivesTheSameBytes) {
  const std::map<std::string, PipelineShape> shapes = {
      {"sched-gpipe", {4, 1, 9}},         {"sched-1f1b", {5, 1, 8}},  {"sched-interleaved", {4, 3, 12}},
      {"sched-breadth-first", {4, 3, 5}}, {"sched-zb-h1", {4, 1, 9}}, {"sched-zb-h2", {4, 1, 9}},
      {"sched-zb-v", {4, 2, 9}}};
  for (const auto& [name, shape] : shapes) {
    const test::LoadedScheduler one(name), other(name);
    const Schedule first = one->rows(shape);
    one->rows({shape.pipeline, shape.chunks, 2 * shape.pipeline}); // has no effect on later calls
    for (const Schedule& again : {one->rows(shape), other->rows(shape)}) {
      EXPECT_EQ(schedule::to_csv(again), schedule::to_csv(first)) << name;
      EXPECT_EQ(again.stage_rank(), first.stage_rank()) << name;
    }
  }
}

} // namespace
