// SPDX-License-Identifier: Apache-2.0
// The rule table and lowering: added actions, numbers of slots, and their assignment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "schedule/graph.hpp"
#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "schedule/timing.hpp"
#include "triax/error.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using test::schedule_of;
using ::testing::ElementsAre;

std::string labels(const Program& program) {
  std::string out;
  for (std::size_t at = 0; at < program.actions().size(); ++at)
    out += (at ? " " : "") + std::string(program.label(static_cast<ActionId>(at)));
  return out;
}

Program lowered(const PipelineShape& shape, const std::string& row) {
  return lower(schedule_of(shape, std::vector<int>(static_cast<std::size_t>(shape.stages()), 0), {row}), shape).front();
}

TEST(StageMap, KnowsTheStagesOfEachRankAndTheirNumbers) {
  const schedule::StageMap map({0, 1, 1, 0});
  EXPECT_THAT(map.stages_of(0), ElementsAre(0, 3));
  EXPECT_THAT(map.stages_of(1), ElementsAre(1, 2));
  EXPECT_THAT(map.stages_of(2), ElementsAre());
  EXPECT_THAT(map.stages_of(-1), ElementsAre());
  for (const int stage : {0, 1}) EXPECT_EQ(map.number_on_rank(stage), 0);
  for (const int stage : {2, 3}) EXPECT_EQ(map.number_on_rank(stage), 1);
  EXPECT_EQ(map, schedule::StageMap({0, 1, 1, 0}));
  EXPECT_NE(map, schedule::StageMap({0, 1, 0, 1}));
  EXPECT_EQ(schedule::StageMap().stages(), 0);
  EXPECT_NE(schedule::StageMap(), map);
  EXPECT_THROW(schedule::StageMap({0, -1}), Error);
}

TEST(Rules, EveryPoolThatIsFilledIsReadAndFreed) {
  std::set<Pool> filled, read, freed;
  for (const Rule& of : rules()) {
    for (const Use& use : of.fills) filled.insert(use.pool);
    for (const Use& use : of.reads) read.insert(use.pool);
    for (const auto& [pool, offset, condition] : of.frees) {
      freed.insert(pool);
      EXPECT_EQ(offset, 0) << of.name;
      EXPECT_TRUE(touches(of.kind, pool)) << of.name << " frees " << name_of(pool) << ", which it does not have";
    }
  }
  EXPECT_EQ(filled.size(), static_cast<std::size_t>(kPools));
  EXPECT_EQ(read, filled);
  EXPECT_EQ(freed, filled);
}

TEST(Rules, FreeTheSamePoolsForAWholeBackwardAsForItsHalves) {
  std::set<Pool> whole, halves;
  for (const Use& use : rule(Kind::backward).frees) whole.insert(use.pool);
  for (const Kind kind : {Kind::backward_input, Kind::backward_weight})
    for (const Use& use : rule(kind).frees) halves.insert(use.pool);
  halves.erase(Pool::stash_iw); // filled and freed within the action
  EXPECT_EQ(whole, halves);
}

TEST(Rules, TextIsPyTorchs) {
  EXPECT_EQ(action_text(Kind::forward, 3, 1), "3F1");
  EXPECT_EQ(action_text(Kind::backward_weight, 0, 12), "0W12");
  EXPECT_EQ(action_text(Kind::recompute, 3, 1), "3R1");
  EXPECT_EQ(action_text(Kind::reduce_grad, 3, -1), "3REDUCE_GRAD");
  EXPECT_EQ(action_text(Kind::opt_step, 3, -1), "3OPT_STEP");
  EXPECT_EQ(action_text(Kind::norm, -1, -1), "NORM");
}

TEST(Lower, GathersTheParametersOfAStageAfterItsStepIfTheyAreUpdatedInParts) {
  const PipelineShape shape{1, 2, 1};
  const Schedule rows = schedule_of(shape, {0, 0}, {"0F0 1F0 1B0 0B0"});
  EXPECT_EQ(labels(lower(rows, shape, Boundaries::whole, Sharding::states).front()),
            "0F0 1F0 1B0 1REDUCE_GRAD 0B0 0REDUCE_GRAD REDUCE_TIED NORM 0OPT_STEP 0GATHER_PARAM 1OPT_STEP "
            "1GATHER_PARAM");
  EXPECT_EQ(labels(lower_forward_only(rows, shape).front()), "0F0 1F0");
}

/// The last two stages stay: their backwards follow their forwards within the distance.
TEST(Lower, GathersTheWeightsOfAStageAheadOfItsUse) {
  const PipelineShape shape{1, 4, 1};
  const Schedule rows = schedule_of(shape, {0, 0, 0, 0}, {"0F0 1F0 2F0 3F0 3B0 2B0 1I0 0I0 1W0 0W0"});
  const auto with = [&](int prefetch) {
    return labels(lower(rows, shape, Boundaries::whole, Sharding::parameters, prefetch).front());
  };
  EXPECT_EQ(with(1),
            "0UNSHARD 1UNSHARD 0F0 0RESHARD 2UNSHARD 1F0 1RESHARD 3UNSHARD 2F0 3F0 3B0 3RESHARD 3REDUCE_GRAD 1UNSHARD "
            "2B0 2RESHARD 2REDUCE_GRAD 0UNSHARD 1I0 1RESHARD 0I0 0RESHARD 1W0 1REDUCE_GRAD 0W0 0REDUCE_GRAD "
            "REDUCE_TIED NORM 0OPT_STEP 1OPT_STEP 2OPT_STEP 3OPT_STEP");
  EXPECT_EQ(with(0).substr(0, 53), "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1RESHARD 2UNSHARD ");
  EXPECT_EQ(with(3).substr(0, 48), "0UNSHARD 1UNSHARD 2UNSHARD 3UNSHARD 0F0 0RESHARD");
  for (const int prefetch : {0, 1, 2, 3, 9})
    EXPECT_EQ(lower(rows, shape, Boundaries::whole, Sharding::parameters, prefetch).front().weight_slots(),
              std::min(prefetch + 1, 4));
  EXPECT_EQ(labels(lower_forward_only(rows, shape, Boundaries::whole, Sharding::parameters, 1).front()),
            "0UNSHARD 1UNSHARD 0F0 0RESHARD 2UNSHARD 1F0 1RESHARD 3UNSHARD 2F0 2RESHARD 3F0 3RESHARD");
}

TEST(Lower, ReducesAfterAStagesLastBackwardAndEndsTheStep) {
  EXPECT_EQ(labels(lowered({1, 2, 2}, "0F0 1F0 1B0 0F1 1F1 1B1 0B0 0B1")),
            "0F0 1F0 1B0 0F1 1F1 1B1 1REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD REDUCE_TIED NORM 0OPT_STEP 1OPT_STEP");
  EXPECT_EQ(labels(lowered({1, 1, 2}, "0F0 0F1 0I0 0I1 0W0 0B1")).substr(0, 19), "0F0 0F1 0I0 0I1 0W0");
  EXPECT_EQ(labels(lowered({1, 1, 2}, "0F0 0F1 0I0 0I1 0W0 0W1")),
            "0F0 0F1 0I0 0I1 0W0 0W1 0REDUCE_GRAD REDUCE_TIED NORM 0OPT_STEP");
}

TEST(Lower, SlotsAreTheMicrobatchesInFlight) {
  const Program gpipe = lowered({1, 1, 4}, "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3");
  EXPECT_EQ(gpipe.slots(0, Pool::stash_i), 4);
  EXPECT_EQ(gpipe.slots(0, Pool::stash_w), 4);
  EXPECT_EQ(gpipe.slots(0, Pool::stash_iw), 0);
  EXPECT_EQ(gpipe.slots(0, Pool::input_i), 0);

  const Program alternating = lowered({1, 1, 4}, "0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3");
  EXPECT_EQ(alternating.slots(0, Pool::stash_i), 1);

  const Program split = lowered({1, 1, 3}, "0F0 0I0 0F1 0I1 0F2 0W0 0I2 0W1 0W2");
  EXPECT_EQ(split.slots(0, Pool::stash_i), 1);
  EXPECT_EQ(split.slots(0, Pool::stash_w), 3);
  EXPECT_EQ(split.slots(0, Pool::stash_iw), 2);
}

TEST(Lower, ASlotGoesBackToTheNextMicrobatch) {
  const Program program = lowered({1, 1, 3}, "0F0 0F1 0B0 0F2 0B1 0B2");
  std::vector<int> slots;
  for (const ProgramAction& action : program.actions())
    if (action.microbatch >= 0) slots.push_back(action.own[static_cast<std::size_t>(Pool::stash_w)]);
  EXPECT_EQ(slots, (std::vector<int>{0, 1, 0, 0, 1, 0}));
}

TEST(Lower, StagesOfOneRankHandOverThroughSlots) {
  const Program program = lowered({1, 2, 2}, "0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1");
  EXPECT_EQ(program.slots(1, Pool::input_i), 2);
  EXPECT_EQ(program.slots(0, Pool::gradient), 2);
  EXPECT_EQ(program.slots(0, Pool::input_i), 0);
  EXPECT_EQ(program.slots(1, Pool::gradient), 0);
  const ProgramAction& producer = program.actions()[1];
  const ProgramAction& consumer = program.actions()[3];
  EXPECT_EQ(producer.handed[static_cast<std::size_t>(Pool::input_i)], 1);
  EXPECT_EQ(consumer.own[static_cast<std::size_t>(Pool::input_i)], 1);
  EXPECT_EQ(producer.own[static_cast<std::size_t>(Pool::input_i)], -1);
}

TEST(Lower, ForwardOnlyNeedsOneSlot) {
  const PipelineShape shape{1, 2, 3};
  const Program program =
      lower_forward_only(schedule_of(shape, {0, 0}, {"0F0 1F0 0F1 1F1 0F2 1F2 1B0 1B1 1B2 0B0 0B1 0B2"}), shape)
          .front();
  EXPECT_EQ(labels(program), "0F0 1F0 0F1 1F1 0F2 1F2");
  for (const Pool pool : {Pool::stash_i, Pool::stash_w}) EXPECT_EQ(program.slots(0, pool), 1);
  EXPECT_EQ(program.slots(1, Pool::input_w), 1);
  EXPECT_EQ(program.slots(0, Pool::stash_iw), 0);
}

TEST(Lower, LabelsStayWhereTheyAreWhenTheProgramMoves) {
  Program program = lowered({1, 1, 1}, "0F0 0B0");
  const char* label = program.label(1);
  const Program moved = std::move(program);
  EXPECT_EQ(moved.label(1), label);
  EXPECT_STREQ(label, "0B0");
}

// Figure 4 of Narayanan et al. (SC'21) with two ranks and three microbatches. A rank posts a receive before the compute
// action during which the other end produces its data.
TEST(Lower, TransfersFollowOneGlobalOrder) {
  const PipelineShape shape{2, 1, 3};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 1}, {"0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"}), shape);
  EXPECT_EQ(
      labels(programs[0]),
      "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0RECV_B1 0SEND_F2 0B1 0RECV_B2 0B2 0REDUCE_GRAD REDUCE_TIED NORM "
      "0OPT_STEP");
  EXPECT_EQ(
      labels(programs[1]),
      "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2 1REDUCE_GRAD REDUCE_TIED NORM "
      "1OPT_STEP");
}

std::vector<std::string> waits(const Program& program, std::size_t at) {
  std::vector<std::string> out;
  for (const ActionId waited : program.actions()[at].waits) out.emplace_back(program.label(waited));
  return out;
}

std::size_t position(const Program& program, const std::string& label) {
  for (std::size_t at = 0; at < program.actions().size(); ++at)
    if (program.label(static_cast<ActionId>(at)) == label) return at;
  throw std::runtime_error("no " + label);
}

TEST(Lower, EachUserOfATransferWaitsForItOnce) {
  const PipelineShape shape{2, 1, 3};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 1}, {"0F0 0F1 0F2 0I0 0I1 0I2 0W0 0W1 0W2", "1F0 1F1 1F2 1I0 1I1 1I2 1W0 1W1 1W2"}),
            shape);
  const auto of = [&programs](std::size_t rank, const std::string& label) {
    return waits(programs[rank], position(programs[rank], label));
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(of(1, "1F0"), ElementsAre("1RECV_F0"));
  EXPECT_THAT(of(1, "1I0"), ElementsAre()); // its forward has already waited
  EXPECT_THAT(of(0, "0I1"), ElementsAre("0RECV_B1"));
  EXPECT_THAT(of(0, "0F1"), ElementsAre());
  EXPECT_THAT(of(0, "0F2"), ElementsAre("0SEND_F0")); // waits for the slot of microbatch 0
  EXPECT_THAT(of(0, "REDUCE_TIED"), ElementsAre("0SEND_F1", "0SEND_F2", "0REDUCE_GRAD"));
  EXPECT_EQ(programs[0].slots(0, Pool::output), 2); // one is sent while the next is computed
  EXPECT_EQ(programs[1].slots(1, Pool::output), 0);
  EXPECT_EQ(programs[1].slots(1, Pool::input_gradient), 2);
}

TEST(Lower, NeighboursOnOneRankHandOverAndOthersSend) {
  const PipelineShape shape{2, 2, 1};
  const std::vector<Program> programs =
      lower(schedule_of(shape, {0, 1, 1, 0}, {"0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"}), shape);
  EXPECT_EQ(labels(programs[0]),
            "0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 3REDUCE_GRAD 0RECV_B0 0B0 0REDUCE_GRAD REDUCE_TIED NORM "
            "0OPT_STEP 3OPT_STEP");
  EXPECT_EQ(programs[1].actions()[position(programs[1], "1F0")].handed[static_cast<std::size_t>(Pool::input_f)], 0);
}

/// R is after the posts that precede its B or I, the receive of the gradient among them, and waits for none of them.
TEST(Lower, RecomputesDirectlyBeforeABackwardAndItsGather) {
  const PipelineShape shape{2, 1, 3};
  const Schedule rows = schedule_of(shape, {0, 1}, {"0F0 0F1 0B0 0F2 0I1 0W1 0B2", "1F0 1B0 1F1 1I1 1W1 1F2 1B2"});
  const std::vector<Program> programs =
      lower(rows, shape, Boundaries::scattered, Sharding::none, kDefaultPrefetch, {true, false});
  EXPECT_EQ(labels(programs[0]),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0R0 0GATHER_B0 0B0 0RECV_B1 0F2 0SEND_F2 0R1 0GATHER_B1 0I1 0W1 "
            "0RECV_B2 0R2 0GATHER_B2 0B2 0REDUCE_GRAD REDUCE_TIED NORM 0OPT_STEP");
  EXPECT_FALSE(programs[1].has(Kind::recompute));
  EXPECT_TRUE(programs[0].recomputes(0));
  EXPECT_FALSE(programs[0].recomputes(1)); // not on this rank
  EXPECT_FALSE(programs[1].recomputes(1));
  const auto of = [&programs](const std::string& label) -> const ProgramAction& {
    return programs[0].actions()[position(programs[0], label)];
  };
  const auto kept = static_cast<std::size_t>(Pool::stash_iw);
  EXPECT_THAT(of("0R0").waits, ElementsAre());
  EXPECT_THAT(waits(programs[0], position(programs[0], "0GATHER_B0")), ElementsAre("0RECV_B0"));
  EXPECT_EQ(of("0R0").own[kept], -1); // B uses the tensor before another pass
  EXPECT_EQ(of("0R1").own[kept], 0);  // W reads it
  EXPECT_EQ(of("0I1").own[kept], 0);
  EXPECT_FALSE(lower_forward_only(rows, shape).front().has(Kind::recompute));
}

/// The weights of a stage are there before R, and are dropped after the backward.
TEST(Lower, RecomputesWithGatheredWeights) {
  const PipelineShape shape{1, 2, 1};
  const Schedule rows = schedule_of(shape, {0, 0}, {"0F0 1F0 1B0 0B0"});
  const Program program = lower(rows, shape, Boundaries::whole, Sharding::parameters, 0, {true, false}).front();
  EXPECT_EQ(labels(program),
            "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1B0 1RESHARD 1REDUCE_GRAD 0UNSHARD 0R0 0B0 0RESHARD 0REDUCE_GRAD "
            "REDUCE_TIED NORM 0OPT_STEP 1OPT_STEP");
  EXPECT_THAT(waits(program, position(program, "0R0")), ElementsAre("0UNSHARD"));
  EXPECT_EQ(program.actions()[position(program, "0R0")].weights, 0);
}

struct RowsCase {
  PipelineShape shape;
  std::vector<int> stage_rank;
  std::vector<std::string> rows;
  Schedule schedule() const { return schedule_of(shape, stage_rank, rows); }
};
const std::vector<RowsCase>& rows_cases() {
  static const std::vector<RowsCase> kCases = {
      {{2, 1, 3}, {0, 1}, {"0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"}},
      {{2, 1, 3}, {0, 1}, {"0F0 0F1 0F2 0I0 0I1 0I2 0W0 0W1 0W2", "1F0 1F1 1F2 1I0 1I1 1I2 1W0 1W1 1W2"}},
      {{2, 2, 2}, {0, 1, 1, 0}, {"0F0 3F0 0F1 3B0 0B0 3F1 3B1 0B1", "1F0 2F0 1F1 2B0 1B0 2F1 2B1 1B1"}},
      {{2, 2, 2}, {0, 1, 0, 1}, {"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1"}},
  };
  return kCases;
}

TEST(CountSlots, AreThoseOfTheProgramsWithAnyBoundariesAndSharding) {
  for (const RowsCase& of : rows_cases())
    for (const Boundaries boundaries : {Boundaries::whole, Boundaries::scattered})
      for (const Sharding sharding : {Sharding::none, Sharding::states, Sharding::gradients, Sharding::parameters})
        for (const bool forward_only : {false, true}) {
          const Schedule schedule = of.schedule();
          const TimedRows rows(schedule, of.shape, forward_only);
          const std::vector<bool> all(of.stage_rank.size(), true);
          for (const std::vector<bool>& recomputes : {std::vector<bool>(), all}) { // R takes no further slot
            const std::vector<Program> programs =
                forward_only ? lower_forward_only(schedule, of.shape, boundaries, sharding)
                             : lower(schedule, of.shape, boundaries, sharding, kDefaultPrefetch, recomputes);
            for (const Program& program : programs) {
              const RankSlots counted = count_slots(rows, program.rank(), boundaries, sharding, kDefaultPrefetch);
              EXPECT_EQ(counted.of_stages, program.rank_slots().of_stages);
              EXPECT_EQ(counted.accumulators, program.accumulators());
              EXPECT_EQ(counted.weight_slots, program.weight_slots());
            }
          }
        }
}

TEST(LowerRank, IsTheProgramOfTheRank) {
  const auto same = [](const ProgramAction& one, const ProgramAction& other) {
    return one.kind == other.kind && one.stage == other.stage && one.microbatch == other.microbatch &&
           one.own == other.own && one.handed == other.handed && one.peer == other.peer &&
           one.accumulator == other.accumulator && one.weights == other.weights && one.waits == other.waits;
  };
  for (const RowsCase& of : rows_cases())
    for (const Sharding sharding : {Sharding::none, Sharding::gradients, Sharding::parameters})
      for (const bool forward_only : {false, true}) {
        const Schedule schedule = of.schedule();
        const TimedRows rows(schedule, of.shape, forward_only);
        const std::vector<Program> programs =
            forward_only ? lower_forward_only(schedule, of.shape, Boundaries::scattered, sharding)
                         : lower(schedule, of.shape, Boundaries::scattered, sharding);
        for (const Program& program : programs) {
          const Program alone = lower_rank(rows, program.rank(), Boundaries::scattered, sharding, kDefaultPrefetch);
          EXPECT_TRUE(std::ranges::equal(alone.actions(), program.actions(), same)) << labels(program);
          EXPECT_EQ(alone.rank_slots(), program.rank_slots());
        }
      }
}

/// The simulator's graph has the same dependencies.
TEST(EndTimes, AreTheLongestPathsOfTheGraph) {
  for (const RowsCase& of : rows_cases()) {
    const TimedRows timed(of.schedule(), of.shape, false);
    const auto times = Graph(timed.rows, timed.stage_map).times([&](std::size_t rank, std::size_t at) {
      return Graph::Lengths{timed.rows[rank][at].kind == ComputeKind::backward ? 2.0 : 1.0};
    });
    for (std::size_t rank = 0; rank < times.size(); ++rank)
      for (std::size_t at = 0; at < times[rank].size(); ++at)
        EXPECT_EQ(static_cast<double>(timed.ends[rank][at]), times[rank][at].end) << rank << ", " << at;
  }
}

TEST(EndTimes, OfRowsThatCannotBeCompletedNameThePass) {
  const auto refusal = [](const std::vector<std::vector<Action>>& rows) {
    try {
      end_times(rows, StageMap({0, 1}));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  const Action forward{ComputeKind::forward, 0, 0, 0, 0}, next{ComputeKind::forward, 0, 1, 0, 0},
      backward{ComputeKind::backward, 0, 0, 0, 0}, last{ComputeKind::backward, 0, 1, 0, 0};
  EXPECT_EQ(refusal({{forward, backward}, {next, last}}), "none");
  EXPECT_THAT(refusal({{forward, backward}, {last, next}}), ::testing::HasSubstr("blocked at action"));
  EXPECT_THAT(refusal({{forward, backward}, {next}}), ::testing::HasSubstr("no row has 1I0"));
}

TEST(Program, WithOtherSlotsKeepsItsActions) {
  const Program program = lowered({1, 1, 2}, "0F0 0B0 0F1 0B1");
  std::vector<Slots> slots = program.rank_slots().of_stages;
  slots.front()[static_cast<std::size_t>(Pool::stash_i)] = 7;
  const Program other = program.with_slots(slots);
  EXPECT_EQ(other.slots(0, Pool::stash_i), 7);
  EXPECT_EQ(program.slots(0, Pool::stash_i), 1);
  EXPECT_EQ(labels(other), labels(program));
  EXPECT_THROW(program.with_slots({}), Error);
}

} // namespace
