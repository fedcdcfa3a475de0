// SPDX-License-Identifier: Apache-2.0
// The verifier on programs of all ranks: lowered programs pass with any guarantees of a backend; programs with faults
// of every kind are refused, with rank, position and action in the message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/guarantees.hpp"
#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "schedule/verify.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using test::reasons;
using test::schedule_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Guarantee kOneQueue{CommTraits::Order::serial, CommTraits::Send::rendezvous, CommTraits::Post::nonblocking};
constexpr Guarantee kByTag{CommTraits::Order::tagged, CommTraits::Send::rendezvous, CommTraits::Post::nonblocking};
constexpr Assumptions kSerial = everywhere(kOneQueue), kTagged = everywhere(kByTag);

constexpr PipelineShape kShape{2, 1, 4};

/// 1F1B on two ranks, four microbatches.
Schedule one_f_one_b_rows() {
  return schedule_of(kShape, {0, 1}, {"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"});
}
std::vector<Program> one_f_one_b() {
  return lower(one_f_one_b_rows(), kShape);
}

struct Mutable {
  explicit Mutable(const Program& program)
      : from(program), actions(program.actions().begin(), program.actions().end()) {
    for (const int stage : program.stages()) {
      Slots& of = slots.emplace_back();
      for (int pool = 0; pool < kPools; ++pool)
        of[static_cast<std::size_t>(pool)] = program.slots(stage, static_cast<Pool>(pool));
    }
  }
  std::size_t at(const std::string& label) const {
    for (std::size_t i = 0; i < actions.size(); ++i)
      if (action_text(actions[i].kind, actions[i].stage, actions[i].microbatch) == label) return i;
    throw std::runtime_error("no " + label);
  }
  /// Moves an action. Waits refer to positions, so they are adjusted.
  void move(const std::string& label, std::size_t to) {
    const std::size_t moved = at(label);
    const auto follow = [moved, to](ActionId id) {
      if (id == moved) return static_cast<ActionId>(to);
      if (moved < id && id <= to) return id - 1;
      if (to <= id && id < moved) return id + 1;
      return id;
    };
    const ProgramAction action = actions[moved];
    actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(moved));
    actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(to), action);
    for (ProgramAction& each : actions)
      for (ActionId& waited : each.waits) waited = follow(waited);
  }
  Program program() const {
    return {from.stage_map(), from.rank(), slots, actions, from.posts(), from.boundaries(), from.sharding()};
  }

  const Program& from;
  std::vector<ProgramAction> actions;
  std::vector<Slots> slots;
};

/// The violations after a change to one rank's program.
template <class Violation>
std::vector<std::string> with_fault(std::size_t rank, const Assumptions& assumptions, Violation fault) {
  std::vector<Program> programs = one_f_one_b();
  Mutable mutated(programs[rank]);
  fault(mutated);
  const Program changed = mutated.program();
  programs[rank] = changed;
  return reasons(verify(programs, {kShape}, assumptions));
}

TEST(Verifier, LoweredProgramsHoldForEveryGuaranteeOfABackend) {
  const PipelineShape two{2, 1, 4}, vee{2, 2, 2};
  const std::vector<std::pair<PipelineShape, Schedule>> schedules = {
      {two, schedule_of(two, {0, 1}, {"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"})},
      {two, schedule_of(two, {0, 1},
                        {"0F0 0F1 0F2 0F3 0I0 0I1 0I2 0I3 0W0 0W1 0W2 0W3",
                         "1F0 1F1 1F2 1F3 1I0 1W0 1I1 1I2 1I3 1W1 1W2 1W3"})},
      {vee, schedule_of(vee, {0, 1, 1, 0}, {"0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1", "1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1"})}};
  for (const auto& [shape, schedule] : schedules) {
    ASSERT_THAT(reasons(verify(schedule, shape)), ElementsAre());
    for (const Assumptions& assumptions : test::all_assumptions()) {
      EXPECT_THAT(reasons(verify(lower(schedule, shape), {shape}, assumptions)), ElementsAre());
      EXPECT_THAT(reasons(verify(lower_forward_only(schedule, shape), {shape, true}, assumptions)), ElementsAre());
    }
  }
}

TEST(Verifier, SwappedTransfersOfAnEdgeAreRefused) {
  EXPECT_THAT(
      with_fault(1, kTagged,
                 [](Mutable& program) {
                   std::swap(program.actions[program.at("1RECV_F0")].microbatch,
                             program.actions[program.at("1RECV_F1")].microbatch);
                 }),
      ::testing::Contains(HasSubstr("1F0: it reads slot 0 of pool input_f, which does not hold its microbatch")));
  EXPECT_THAT(with_fault(0, kTagged, [](Mutable& program) { program.move("0SEND_F0", program.at("0SEND_F1")); }),
              ElementsAre("rank 0, action 3, 0SEND_F1: it is send 0 from rank 0 to rank 1, but receive 0 there is "
                          "1RECV_F0 (rank 1, action 1); both ends must use the same order"));
}

// A gradient is received before the send that leads to it. If transfers can overtake one another, this has no effect;
// in a single queue both ranks deadlock.
TEST(Verifier, RefusesOneQueuePerRankIfItCausesACycle) {
  const auto early = [](Mutable& program) { program.move("0RECV_B0", 0); };
  EXPECT_THAT(with_fault(0, kTagged, early), ElementsAre());
  const std::vector<std::string> refused = with_fault(0, kSerial, early);
  ASSERT_EQ(refused.size(), 1u);
  for (const char* part :
       {"rank 0, action 1, 0RECV_B0: deadlock (a -> b: a waits for b): 0RECV_B0 (rank 0, action 1) -> ",
        " -> 1SEND_B0 (rank 1, ", " -> 1RECV_F0 (rank 1, ", " -> 0SEND_F0 (rank 0, ",
        " -> 0RECV_B0; assumed: one queue per rank shared with the layers, rendezvous sends, nonblocking posts"})
    EXPECT_THAT(refused[0], HasSubstr(part));
  Assumptions blocking = kTagged;
  blocking.edges.post = CommTraits::Post::blocking;
  EXPECT_EQ(with_fault(0, blocking, early).size(), 1u);
}

// Each receive is just before the action that needs it. Under rendezvous with one transfer at a time, 1F1B deadlocks in
// its steady state; with buffered sends it does not.
TEST(Verifier, RefusesReceivesJustBeforeUseUnderRendezvous) {
  const auto in_place = [](std::vector<Program>& programs) {
    for (Program& program : programs) {
      Mutable changed(program);
      for (int mb = 0; mb < 4; ++mb) {
        const std::string receive = action_text(program.rank() == 0 ? Kind::recv_b : Kind::recv_f, program.rank(), mb);
        const std::string consumer =
            action_text(program.rank() == 0 ? Kind::backward : Kind::forward, program.rank(), mb);
        changed.move(receive, changed.at(consumer) - (changed.at(receive) < changed.at(consumer) ? 1 : 0));
      }
      const Program moved = changed.program();
      program = moved;
    }
  };
  std::vector<Program> programs = one_f_one_b();
  in_place(programs);
  Assumptions assumptions = everywhere(kMinGuarantee);
  EXPECT_THAT(reasons(verify(programs, {kShape}, assumptions)), ElementsAre(HasSubstr("deadlock (")));
  assumptions.edges.send = CommTraits::Send::buffered;
  EXPECT_THAT(reasons(verify(programs, {kShape}, assumptions)), ElementsAre());
}

TEST(Verifier, ATransferThatIsMissingOrTwiceIsRefused) {
  EXPECT_THAT(with_fault(0, kTagged, [](Mutable& program) { program.actions[program.at("0SEND_F3")].microbatch = 2; }),
              ::testing::IsSupersetOf({HasSubstr("0SEND_F2: it is already at action 9")}));
  const std::vector<std::string> refused = with_fault(1, kTagged, [](Mutable& program) {
    program.move("1SEND_B3", program.actions.size() - 1);
    program.actions.pop_back();
  });
  EXPECT_THAT(refused, ::testing::Contains(std::string("rank 1: 1SEND_B3 is missing")));
}

TEST(Verifier, AMissingWaitIsAHazard) {
  EXPECT_THAT(with_fault(1, kTagged, [](Mutable& program) { program.actions[program.at("1F1")].waits.clear(); }),
              ::testing::Contains(HasSubstr("1F1: it does not wait for 1RECV_F1, which may still use slot")));
  EXPECT_THAT(
      with_fault(0, kTagged, [](Mutable& program) { program.actions[program.at("0F2")].waits.clear(); }),
      ::testing::Contains(HasSubstr("0F2: it does not wait for 0SEND_F0, which may still use slot 0 of pool output")));
}

TEST(Verifier, ReportsActionsMissingOnAllRanks) {
  PipelineShape more = kShape;
  ++more.microbatches;
  EXPECT_THAT(reasons(verify(one_f_one_b(), {more}, kTagged)),
              ::testing::IsSupersetOf({"rank 0: 0F4 is missing, the forward of stage 0, microbatch 4",
                                       "rank 0: 0SEND_F4 is missing",
                                       "rank 1: 1B4 is missing, the backward of stage 1, microbatch 4"}));
  EXPECT_THAT(reasons(verify(lower_forward_only(one_f_one_b_rows(), kShape), {kShape}, kTagged)),
              ::testing::IsSupersetOf({"rank 0: 0B0 is missing, the backward of stage 0, microbatch 0",
                                       "rank 1: 1REDUCE_GRAD is missing", "rank 1: 1OPT_STEP is missing"}));
  EXPECT_THAT(reasons(verify(one_f_one_b(), {kShape, true}, kTagged)),
              ::testing::Contains(HasSubstr("0B0: an evaluation runs only forwards")));
  EXPECT_THAT(reasons(verify(std::vector<Program>{}, {kShape}, kTagged)),
              ElementsAre("there are programs of 0 ranks, but p = 2"));
}

TEST(Verifier, AnActionWithoutItsSlotIsRefused) {
  const auto without = [](const std::string& label, Pool pool) {
    return [=](Mutable& program) { program.actions[program.at(label)].own[static_cast<std::size_t>(pool)] = -1; };
  };
  EXPECT_THAT(with_fault(1, kTagged, without("1F1", Pool::input_f)),
              ::testing::Contains(HasSubstr("1F1: it has no slot of pool input_f to read")));
  EXPECT_THAT(with_fault(0, kTagged, without("0B1", Pool::gradient)),
              ::testing::Contains(HasSubstr("0B1: it has no slot of pool gradient to read")));
  EXPECT_THAT(with_fault(1, kTagged, without("1RECV_F1", Pool::input_i)),
              ::testing::Contains(HasSubstr("1RECV_F1: it has no slot of pool input_i to fill")));
}

TEST(Verifier, OnlyComputingWaitsAndOnlyForTransfers) {
  EXPECT_THAT(
      with_fault(0, kTagged,
                 [](Mutable& program) {
                   program.actions[program.at("0SEND_F1")].waits = {static_cast<ActionId>(program.at("0SEND_F0"))};
                 }),
      ::testing::Contains(HasSubstr("0SEND_F1: it is a posted transfer, but lists an action to wait for; posted "
                                    "transfers must not wait")));
  EXPECT_THAT(with_fault(0, kTagged, [](Mutable& program) { program.actions[program.at("0F1")].waits = {0}; }),
              ::testing::Contains(HasSubstr("0F1: it waits for 0F0, which is not a transfer")));
}

TEST(Verifier, GradientsAscend) {
  const PipelineShape shape{1, 1, 2};
  Program program = lower(schedule_of(shape, {0}, {"0F0 0F1 0I0 0I1 0W0 0W1"}), shape).front();
  Mutable changed(program);
  changed.move("0W1", changed.at("0W0"));
  EXPECT_THAT(reasons(verify(std::vector<Program>{changed.program()}, {shape}, kTagged)),
              ::testing::Contains(HasSubstr("0W0: the weight gradient of microbatch 1 came before")));
}

TEST(Verifier, TheCapCountsMicrobatchesOverStages) {
  const std::vector<Program> programs = one_f_one_b();
  EXPECT_THAT(reasons(verify(programs, {kShape, false, 2}, kTagged)), ElementsAre());
  EXPECT_THAT(
      reasons(verify(programs, {kShape, false, 1}, kTagged)),
      ::testing::Contains(std::string("rank 0, action 3, 0F1: more than 1 microbatch chunk is in flight on its rank")));
}

TEST(Verifier, WrongRanksAreRefused) {
  std::vector<Program> programs = one_f_one_b();
  std::swap(programs[0], programs[1]);
  EXPECT_THAT(reasons(verify(programs, {kShape}, kTagged)), ElementsAre("program 0 is that of rank 1"));
  EXPECT_THAT(
      with_fault(0, kTagged, [](Mutable& program) { program.actions[program.at("0SEND_F0")].peer = 0; }),
      ::testing::Contains(std::string("rank 0, action 2, 0SEND_F0: it names rank 0, but the stage is on rank 1")));
}

TEST(Verifier, DerivesGuaranteesFromTraits) {
  CommTraits eager;
  eager.order = CommTraits::Order::tagged;
  eager.send = CommTraits::Send::buffered;
  eager.buffered_bytes = 1024;
  EXPECT_EQ(guarantee_of(eager, 1024).send, CommTraits::Send::buffered);
  EXPECT_EQ(guarantee_of(eager, 1025).send, CommTraits::Send::rendezvous); // too large for its buffer
  EXPECT_EQ(guarantee_of(eager, 8).order, CommTraits::Order::tagged);
  const Guarantee least = both(guarantee_of(eager, 8), kMinGuarantee);
  EXPECT_EQ(least.order, CommTraits::Order::serial);
  EXPECT_EQ(least.send, CommTraits::Send::rendezvous);
  EXPECT_EQ(least.post, CommTraits::Post::blocking);
}

// A receive is posted before a forward that its sender needs. If both are in one queue, the forward waits for the
// receive, and the receive for the forward.
TEST(Verifier, RefusesAQueueSharedWithLayersIfItCausesACycle) {
  const auto early = [](Mutable& program) { program.move("0RECV_B0", 0); };
  const Assumptions queue_of_both{kOneQueue, kByTag, kOneQueue}, queue_of_layers{kByTag, kOneQueue, kOneQueue};
  EXPECT_THAT(with_fault(0, queue_of_layers, early), ElementsAre());
  const auto between = [](Mutable& program) { program.move("0RECV_B0", program.at("0SEND_F0") + 1); };
  EXPECT_THAT(with_fault(0, kTagged, between), ElementsAre());
  EXPECT_THAT(with_fault(0, {kOneQueue, kByTag, kByTag}, early),
              ElementsAre(HasSubstr("assumed: one queue per rank, rendezvous sends")));
  EXPECT_THAT(with_fault(0, queue_of_both, early),
              ElementsAre(HasSubstr("assumed: one queue per rank shared with the layers, rendezvous sends")));
}

/// 1F1B with scattered boundaries.
std::vector<Program> scattered() {
  return lower(one_f_one_b_rows(), kShape, Boundaries::scattered);
}

TEST(Verifier, ScatteredBoundariesAreGatheredBeforeTheyAreRead) {
  for (const Assumptions& assumptions : test::all_assumptions()) {
    EXPECT_THAT(reasons(verify(scattered(), {kShape}, assumptions)), ElementsAre());
    EXPECT_THAT(reasons(verify(lower_forward_only(one_f_one_b_rows(), kShape, Boundaries::scattered), {kShape, true},
                               assumptions)),
                ElementsAre());
  }
  const auto with = [](auto fault) {
    std::vector<Program> programs = scattered();
    Mutable mutated(programs[1]);
    fault(mutated);
    const Program changed = mutated.program();
    programs[1] = changed;
    return reasons(verify(programs, {kShape}, kTagged));
  };
  EXPECT_THAT(with([](Mutable& program) { program.move("1GATHER_F1", program.at("1F1")); }),
              ::testing::Contains(std::string("rank 1, action 7, 1F1: it needs 1GATHER_F1, which comes later, at "
                                              "action 8")));
  EXPECT_THAT(with([](Mutable& program) { program.actions[program.at("1GATHER_F1")].microbatch = 2; }),
              ::testing::Contains(std::string("rank 1, action 8, 1F1: it needs 1GATHER_F1, which is not in the "
                                              "program")));
  EXPECT_THAT(with([](Mutable& program) { program.actions[program.at("1GATHER_F0")].waits.clear(); }),
              ::testing::Contains(
                  HasSubstr("1GATHER_F0: it does not wait for 1RECV_F0, which may still use slot 0 of pool input_f")));
  std::vector<Program> programs = scattered();
  programs[1] = one_f_one_b()[1];
  EXPECT_THAT(reasons(verify(programs, {kShape}, kTagged)),
              ElementsAre("rank 1: its program and that of rank 0 do not scatter the same boundaries"));
}

TEST(Verifier, ParametersThatAreUpdatedInPartsAreGatheredAfterTheStep) {
  const auto divided = [] { return lower(one_f_one_b_rows(), kShape, Boundaries::whole, Sharding::states); };
  for (const Assumptions& assumptions : test::all_assumptions())
    EXPECT_THAT(reasons(verify(divided(), {kShape}, assumptions)), ElementsAre());
  const auto with = [&](auto fault) {
    std::vector<Program> programs = divided();
    Mutable mutated(programs[1]);
    fault(mutated);
    const Program changed = mutated.program();
    programs[1] = changed;
    return reasons(verify(programs, {kShape}, kTagged));
  };
  EXPECT_THAT(with([](Mutable& program) { program.actions.pop_back(); }),
              ElementsAre("rank 1: 1GATHER_PARAM is missing"));
  EXPECT_THAT(with([](Mutable& program) { program.move("1GATHER_PARAM", program.at("1OPT_STEP")); }),
              ElementsAre(HasSubstr("1GATHER_PARAM: it needs 1OPT_STEP, which comes later")));
  std::vector<Program> programs = divided();
  programs[1] = one_f_one_b()[1];
  EXPECT_THAT(reasons(verify(programs, {kShape}, kTagged)),
              ElementsAre("rank 1: its program and that of rank 0 do not divide the same among the ranks"));
}

/// Breadth-first on one rank: the third stage to accumulate uses the slot of the first.
TEST(Verifier, AnAccumulatorHasOneStageAtATime) {
  const PipelineShape shape{1, 3, 1};
  const Schedule rows = schedule_of(shape, {0, 0, 0}, {"0F0 1F0 2F0 2B0 1I0 1W0 0B0"});
  const std::vector<Program> divided = lower(rows, shape, Boundaries::whole, Sharding::gradients);
  EXPECT_EQ(divided[0].accumulators(), 2);
  EXPECT_EQ(divided[0].accumulator(2), 0);
  EXPECT_EQ(divided[0].accumulator(1), 1);
  EXPECT_EQ(divided[0].accumulator(0), 0);
  EXPECT_EQ(lower(rows, shape).front().accumulators(), 0);
  for (const Assumptions& assumptions : test::all_assumptions())
    EXPECT_THAT(reasons(verify(divided, {shape}, assumptions)), ElementsAre());
  const auto with = [&](auto fault) {
    Mutable mutated(divided[0]);
    fault(mutated);
    return reasons(verify(std::vector<Program>{mutated.program()}, {shape}, kTagged));
  };
  EXPECT_THAT(
      with([](Mutable& program) { program.actions[program.at("0B0")].waits.clear(); }),
      ::testing::Contains(HasSubstr("0B0: it does not wait for 2REDUCE_GRAD, which may still use slot 0 of pool "
                                    "accumulator")));
  EXPECT_THAT(with([](Mutable& program) { program.actions[program.at("2B0")].accumulator = -1; }),
              ::testing::Contains(HasSubstr("2B0: it has no slot of pool accumulator to fill")));
  EXPECT_THAT(with([](Mutable& program) { program.actions[program.at("1REDUCE_GRAD")].accumulator = 0; }),
              ::testing::Contains(HasSubstr("1REDUCE_GRAD: it reads slot 0 of pool accumulator, which does not hold "
                                            "its stage")));
  EXPECT_THAT(with([](Mutable& program) { program.actions[program.at("1W0")].accumulator = 1; }), // zeroes the sum
              ElementsAre(HasSubstr("1W0: slot 1 of pool accumulator still holds stage 1")));
  EXPECT_THAT(with([](Mutable& program) { program.move("2REDUCE_GRAD", program.at("1REDUCE_GRAD")); }), ElementsAre());
  EXPECT_THAT(with([](Mutable& program) {
                program.actions[program.at("1I0")].accumulator = 0;
                program.actions[program.at("1REDUCE_GRAD")].accumulator = 0;
                program.move("2REDUCE_GRAD", program.at("1REDUCE_GRAD"));
              }),
              ::testing::Contains(HasSubstr("1I0: slot 0 of pool accumulator still holds stage 2")));
}

/// The third stage to run uses the slot of the first.
TEST(Verifier, WeightsAreGatheredBeforePassesReadThem) {
  const PipelineShape shape{1, 3, 1};
  const Schedule rows = schedule_of(shape, {0, 0, 0}, {"0F0 1F0 2F0 2B0 1B0 0B0"});
  const std::vector<Program> divided = lower(rows, shape, Boundaries::whole, Sharding::parameters, 1);
  EXPECT_EQ(divided[0].weight_slots(), 2);
  for (const Assumptions& assumptions : test::all_assumptions()) {
    EXPECT_THAT(reasons(verify(divided, {shape}, assumptions)), ElementsAre());
    EXPECT_THAT(reasons(verify(lower_forward_only(rows, shape, Boundaries::whole, Sharding::parameters, 1),
                               {shape, true}, assumptions)),
                ElementsAre());
  }
  const auto with = [&](auto fault) {
    Mutable mutated(divided[0]);
    fault(mutated);
    return reasons(verify(std::vector<Program>{mutated.program()}, {shape}, kTagged));
  };
  const auto at = [](Mutable& program, const char* action) -> ProgramAction& {
    return program.actions[program.at(action)];
  };
  EXPECT_THAT(
      with([&](Mutable& program) { at(program, "1F0").waits.clear(); }),
      ::testing::Contains(HasSubstr("1F0: it does not wait for 1UNSHARD, which may still use slot 1 of pool weights")));
  EXPECT_THAT(with([&](Mutable& program) { at(program, "1F0").weights = 0; }),
              ::testing::Contains(HasSubstr("1F0: it reads slot 0 of pool weights, which does not hold its stage")));
  EXPECT_THAT(with([&](Mutable& program) { at(program, "1F0").weights = -1; }),
              ::testing::Contains(HasSubstr("1F0: it has no slot of pool weights to read")));
  EXPECT_THAT(with([&](Mutable& program) { at(program, "2UNSHARD").weights = -1; }),
              ::testing::Contains(HasSubstr("2UNSHARD: it has no slot of pool weights to fill")));
  EXPECT_THAT(with([&](Mutable& program) { program.move("0RESHARD", program.at("1F0")); }),
              ::testing::Contains(HasSubstr("2UNSHARD: slot 0 of pool weights still holds stage 0")));
  EXPECT_THAT(with([&](Mutable& program) { program.move("0RESHARD", program.at("0F0")); }),
              ::testing::Contains(HasSubstr("0F0: it reads slot 0 of pool weights, which does not hold its stage")));
  EXPECT_THAT(with([&](Mutable& program) {
                program.actions.erase(program.actions.begin() + static_cast<std::ptrdiff_t>(program.at("1RESHARD")));
              }),
              ::testing::Contains(HasSubstr("stage 1: pool weights, slot 1 still holds stage 1 at the end")));
}

} // namespace
