// SPDX-License-Identifier: Apache-2.0
// The verifier on rows and programs: what is refused, and with which message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "schedule/verify.hpp"

namespace {
using namespace triax;
using schedule::Kind;
using schedule::Pool;
using test::reasons;
using test::schedule_of;
using ::testing::ElementsAre;

struct Case {
  const char* name;
  PipelineShape shape;
  std::vector<int> stage_rank;
  std::vector<std::string> rows;
  std::vector<std::string> reasons; // empty: accepted
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.name;
}

class Rows : public ::testing::TestWithParam<Case> {};

TEST_P(Rows, AreJudged) {
  const Case& c = GetParam();
  EXPECT_EQ(reasons(schedule::verify(schedule_of(c.shape, c.stage_rank, c.rows), c.shape)), c.reasons);
}

const Case kCases[] = {
    {"Gpipe", {1, 1, 2}, {0}, {"0F0 0F1 0B0 0B1"}, {}},
    {"OneForwardOneBackward", {1, 1, 2}, {0}, {"0F0 0B0 0F1 0B1"}, {}},
    {"SplitBackward", {1, 1, 2}, {0}, {"0F0 0F1 0I0 0I1 0W0 0W1"}, {}},
    {"WholeAndSplitMixed", {1, 1, 2}, {0}, {"0F0 0F1 0B0 0I1 0W1"}, {}},
    {"TwoRanks", {2, 1, 2}, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}, {}},
    {"ChunksOnOneRank", {1, 2, 1}, {0, 0}, {"0F0 1F0 1B0 0B0"}, {}},
    {"VShape", {2, 2, 1}, {0, 1, 1, 0}, {"0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"}, {}},
    {"ForwardMissing",
     {1, 1, 2},
     {0},
     {"0F0 0B0 0B1"},
     {"rank 0: 0F1 is missing, the forward of stage 0, microbatch 1"}},
    {"WeightMissing",
     {1, 1, 1},
     {0},
     {"0F0 0I0"},
     {"rank 0: 0W0 is missing, the weight gradient of stage 0, microbatch 0"}},
    {"WholeMissing",
     {1, 1, 2},
     {0},
     {"0F0 0F1 0B0"},
     {"rank 0: 0B1 is missing, the backward of stage 0, microbatch 1"}},
    {"BothHalvesMissing",
     {1, 1, 2},
     {0},
     {"0F0 0F1 0I0 0W0"},
     {"rank 0: 0I1 is missing, the input gradient of stage 0, microbatch 1",
      "rank 0: 0W1 is missing, the weight gradient of stage 0, microbatch 1"}},
    {"AllBackwardsOfAStageMissingWhereOthersSplit",
     {1, 2, 1},
     {0, 0},
     {"0F0 1F0 1I0 1W0"},
     {"rank 0: 0I0 is missing, the input gradient of stage 0, microbatch 0",
      "rank 0: 0W0 is missing, the weight gradient of stage 0, microbatch 0"}},
    {"AllBackwardsMissing", {1, 1, 1}, {0}, {"0F0"}, {"rank 0: 0B0 is missing, the backward of stage 0, microbatch 0"}},
    {"Twice",
     {1, 1, 1},
     {0},
     {"0F0 0F0 0B0"},
     {"rank 0, action 2, 0F0: the forward of stage 0, microbatch 0 is already at action 1"}},
    {"WholeAndItsHalf",
     {1, 1, 1},
     {0},
     {"0F0 0B0 0W0"},
     {"rank 0, action 3, 0W0: the weight gradient of stage 0, microbatch 0 is already at action 2"}},
    {"BackwardFirst",
     {1, 1, 1},
     {0},
     {"0B0 0F0"},
     {"rank 0, action 1, 0B0: it needs 0F0, which comes later, at action 2"}},
    {"WeightBeforeInput",
     {1, 1, 1},
     {0},
     {"0F0 0W0 0I0"},
     {"rank 0, action 2, 0W0: it needs 0I0, which comes later, at action 3"}},
    {"InputsDescend",
     {1, 1, 2},
     {0},
     {"0F0 0F1 0I1 0I0 0W0 0W1"},
     {"rank 0, action 3, 0I1: the input gradient of microbatch 0 comes later, at action 4; gradients of a stage "
      "are added in ascending order of microbatches, so that every schedule gives the same bits"}},
    {"WeightsDescend",
     {1, 1, 2},
     {0},
     {"0F0 0F1 0I0 0I1 0W1 0W0"},
     {"rank 0, action 5, 0W1: the weight gradient of microbatch 0 comes later, at action 6; gradients of a stage "
      "are added in ascending order of microbatches, so that every schedule gives the same bits"}},
    {"InputsDescendAndRanksWaitForEachOther",
     {2, 1, 3},
     {0, 1},
     {"0F0 0F1 0B1 0F2 0B0 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"},
     {"rank 0, action 3, 0B1: the backward of microbatch 0 comes later, at action 5; gradients of a stage "
      "are added in ascending order of microbatches, so that every schedule gives the same bits",
      "rank 0, action 3, 0B1: it waits for 1B1 at action 5 of rank 1, which is never reached",
      "rank 1, action 3, 1F2: it waits for 0F2 at action 4 of rank 0, which is never reached"}},
    {"UnknownStageAndMicrobatch",
     {1, 1, 1},
     {0},
     {"0F0 0B0 1F0 0F1"},
     {"rank 0, action 3, 1F0: stage 1 does not exist; the last is 0",
      "rank 0, action 4, 0F1: microbatch 1 does not exist; the last is 0"}},
    {"OtherRanksStage",
     {2, 1, 1},
     {0, 1},
     {"0F0 1F0 1B0 0B0", ""},
     {"rank 0, action 2, 1F0: stage 1 is on rank 1", "rank 0, action 3, 1B0: stage 1 is on rank 1"}},
    {"NoSuchRank", {1, 2, 1}, {0, 1}, {"0F0"}, {"the schedule assigns stage 1 to rank 1 of 1"}},
    {"RankWithoutAStage", {2, 1, 1}, {0, 0}, {"0F0 1F0 1B0 0B0", ""}, {"rank 1: the schedule assigns it no stage"}},
    {"StagesMissing",
     {1, 2, 1},
     {0},
     {"0F0"},
     {"the schedule has 1 stage, but parallel.pipeline x parallel.chunks = 2"}},
    {"ConsumerBeforeProducer",
     {1, 2, 1},
     {0, 0},
     {"1F0 0F0 1B0 0B0"},
     {"rank 0, action 1, 1F0: it waits for 0F0 at action 2 of rank 0, which is never reached"}},
    {"RanksWaitForEachOther",
     {2, 1, 2},
     {0, 1},
     {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"},
     {"rank 0, action 2, 0B0: it waits for 1B0 at action 3 of rank 1, which is never reached",
      "rank 1, action 2, 1F1: it waits for 0F1 at action 3 of rank 0, which is never reached"}},
};
INSTANTIATE_TEST_SUITE_P(All, Rows, ::testing::ValuesIn(kCases),
                         [](const auto& of) { return std::string(of.param.name); });

/// It reads no action: these rows are wrong.
TEST(StageMapOfRows, IsJudgedWithoutActions) {
  const auto judged = [](const PipelineShape& shape, const std::vector<int>& stage_rank) {
    const Schedule schedule = schedule_of(shape, stage_rank, std::vector<std::string>(2, "0B0"));
    return std::pair(reasons(schedule::verify_stage_map(schedule, shape)), reasons(schedule::verify(schedule, shape)));
  };
  EXPECT_TRUE(judged({2, 1, 1}, {0, 1}).first.empty());
  EXPECT_FALSE(judged({2, 1, 1}, {0, 1}).second.empty());
  const std::vector<std::vector<int>> wrong_maps = {{0}, {0, 2}, {0, -1}, {1, 1}};
  for (const std::vector<int>& wrong : wrong_maps) {
    const auto [of_map, of_all] = judged({2, 1, 1}, wrong);
    EXPECT_FALSE(of_map.empty());
    EXPECT_EQ(of_map, of_all);
  }
}

TEST(VerifyRows, RefusesSlicesAndMissingRows) {
  const PipelineShape shape{1, 1, 1};
  Schedule sliced = schedule_of(shape, {0}, {"0F0 0B0"});
  sliced.row(0)[0].slice = 1;
  EXPECT_THAT(reasons(schedule::verify(sliced, shape)),
              ElementsAre("rank 0, action 1, 0F0.1: this version runs whole sequences through one pipeline"));

  const Schedule one_row = schedule_of(shape, {0}, {"0F0 0B0"});
  EXPECT_THAT(reasons(schedule::verify(one_row, PipelineShape{2, 1, 1})),
              ::testing::Contains("the schedule has 1 rows for parallel.pipeline = 2"));
}

TEST(VerifyRows, RefusesAnUnknownKind) {
  const PipelineShape shape{1, 1, 1};
  Schedule rows = schedule_of(shape, {0}, {"0F0 0B0"});
  rows.row(0)[1].kind = static_cast<ComputeKind>(9);
  EXPECT_THAT(reasons(schedule::verify(rows, shape)),
              ElementsAre("rank 0, action 2: an action of kind 9, which is not F, B, I or W"));
}

TEST(VerifyRows, ReportsWhichRuleAndWhichActions) {
  const PipelineShape shape{2, 1, 2};
  const std::vector<schedule::Violation> violations =
      schedule::verify(schedule_of(shape, {0, 1}, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"}), shape);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[1].rule, schedule::Violation::Rule::reached);
  EXPECT_EQ(violations[1].at.rank, 1);
  EXPECT_EQ(violations[1].at.position, 1u);
  EXPECT_EQ(action_text(violations[1].at), "1F1");
  ASSERT_EQ(violations[1].others.size(), 1u);
  EXPECT_EQ(violations[1].others[0].rank, 0);
  EXPECT_EQ(violations[1].others[0].position, 2u);
  EXPECT_EQ(action_text(violations[1].others[0]), "0F1");
}

using schedule::Program;

std::vector<std::string> judged(const Program& program, int microbatches) {
  return reasons(schedule::verify(std::vector<Program>{program}, {{1, 1, microbatches}}, {}));
}

schedule::Program with_actions(std::vector<schedule::ProgramAction> actions) {
  schedule::Slots sizes{};
  sizes[static_cast<std::size_t>(Pool::stash_i)] = 1;
  sizes[static_cast<std::size_t>(Pool::stash_w)] = 1;
  return {schedule::StageMap({0}), 0, {sizes}, std::move(actions)};
}

schedule::ProgramAction compute(Kind kind, int microbatch, std::int16_t slot) {
  schedule::ProgramAction action{.kind = kind, .stage = 0, .microbatch = microbatch};
  action.own[static_cast<std::size_t>(Pool::stash_i)] = slot;
  action.own[static_cast<std::size_t>(Pool::stash_w)] = slot;
  return action;
}

schedule::ProgramAction ending(Kind kind, int stage = -1) {
  return {.kind = kind, .stage = stage};
}

TEST(VerifyProgram, AcceptsLoweredPrograms) {
  const PipelineShape shape{1, 2, 3};
  const Schedule rows = schedule_of(shape, {0, 0}, {"0F0 1F0 0F1 1F1 1I0 0I0 1W0 1B1 0I1 0F2 1F2 0W0 0W1 1B2 0B2"});
  ASSERT_THAT(reasons(schedule::verify(rows, shape)), ElementsAre());
  EXPECT_THAT(reasons(schedule::verify(schedule::lower(rows, shape), {shape}, {})), ElementsAre());
  EXPECT_THAT(reasons(schedule::verify(schedule::lower_forward_only(rows, shape), {shape, true}, {})), ElementsAre());
}

TEST(VerifyProgram, RefusesASlotUsedTwice) {
  const auto program =
      with_actions({compute(Kind::forward, 0, 0), compute(Kind::forward, 1, 0), compute(Kind::backward, 0, 0),
                    compute(Kind::backward, 1, 0), ending(Kind::reduce_grad, 0), ending(Kind::reduce_tied),
                    ending(Kind::norm), ending(Kind::opt_step, 0)});
  EXPECT_THAT(
      judged(program, 2),
      ::testing::IsSupersetOf({"rank 0, action 2, 0F1: slot 0 of pool stash_i still holds microbatch 0",
                               "rank 0, action 3, 0B0: it reads slot 0 of pool stash_i, which does not hold its "
                               "microbatch"}));
}

TEST(VerifyProgram, RefusesASlotThatDoesNotExist) {
  const auto program = with_actions({compute(Kind::forward, 0, 1)});
  EXPECT_THAT(judged(program, 1),
              ::testing::IsSupersetOf({"rank 0, action 1, 0F0: slot 1 of pool stash_i does not exist",
                                       "rank 0, action 1, 0F0: slot 1 of pool stash_w does not exist"}));
}

TEST(VerifyProgram, RefusesAStepThatEndsWrongly) {
  const auto program = with_actions(
      {compute(Kind::forward, 0, 0), ending(Kind::reduce_grad, 0), compute(Kind::backward, 0, 0), ending(Kind::norm)});
  EXPECT_THAT(judged(program, 1),
              ElementsAre("rank 0: 0OPT_STEP is missing",
                          "rank 0, action 2, 0REDUCE_GRAD: it needs 0B0, which comes later, at action 3",
                          "rank 0, action 4, NORM: it needs REDUCE_TIED, which is not in the program",
                          "rank 0, action 4, NORM: it does not wait for 0REDUCE_GRAD, which was posted before"));
}

} // namespace
