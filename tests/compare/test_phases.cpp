// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes, from timelines whose parts are known.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "compare/phases.hpp"

namespace triax::compare {
namespace {

using report::RankTimeline;
using schedule::Kind;

schedule::MeasuredPass pass(Kind kind, double start, double end) {
  return {{kind, 0, 0, start, end}, 0};
}

/// Rank 0 computes from 0 to 4 and sends at 4. Rank 1 waits from 1, receives at 5, and computes to 9, with an
/// all_reduce from 6 to 7 in it. Then both take the norm.
std::vector<RankTimeline> two_ranks() {
  RankTimeline first, second;
  first.rank = 0;
  first.start = 0;
  first.end = 10;
  first.passes = {pass(Kind::forward, 0, 4)};
  first.actions = {pass(Kind::norm, 9, 10)};
  first.calls = {{"send", "pipeline", "0SEND_F0", 1, 8, 4, 5, false}};
  second.rank = 1;
  second.start = 1;
  second.end = 10;
  second.passes = {pass(Kind::backward, 5, 9)};
  second.actions = {pass(Kind::norm, 9, 10)};
  second.calls = {{"receive", "pipeline", "1RECV_F0", 0, 8, 1, 5, false},
                  {"all_reduce", "tensor", "1B0", -1, 8, 6, 7, true}};
  second.waits = {{1, 5, "1RECV_F0", 0}, {6, 7, "all_reduce of tensor", -1}};
  return {first, second};
}

TEST(Phases, OfTwoRanks) {
  const std::vector<RankTimeline> ranks = two_ranks();
  const Phases out = phases_of(ranks);
  EXPECT_DOUBLE_EQ(out.forward, 2) << "4 of rank 0, mean over two ranks";
  EXPECT_DOUBLE_EQ(out.backward, 1.5) << "4 of rank 1 without its all_reduce";
  EXPECT_DOUBLE_EQ(out.exposed.at("tensor"), 0.5);
  EXPECT_DOUBLE_EQ(out.stage_wait, 1.5) << "rank 1 waits from 1 until rank 0 sends at 4";
  EXPECT_DOUBLE_EQ(out.exposed.at("pipeline"), 0.5) << "the transfer from 4 to 5";
  EXPECT_DOUBLE_EQ(out.optimizer, 1);
  EXPECT_DOUBLE_EQ(out.step, 10);
  EXPECT_DOUBLE_EQ(out.other, 10 - 2 - 1.5 - 0.5 - 1.5 - 0.5 - 1);
}

TEST(Phases, AWaitThatBeginsAfterTheSendIsNoStageWait) {
  std::vector<RankTimeline> ranks = two_ranks();
  ranks[0].calls[0].posted = 0.5;
  const Phases out = phases_of(ranks);
  EXPECT_DOUBLE_EQ(out.stage_wait, 0);
  EXPECT_DOUBLE_EQ(out.exposed.at("pipeline"), 2);
}

TEST(Phases, MessagesBetweenTwoRanksArriveInOrder) {
  std::vector<RankTimeline> ranks = two_ranks();
  ranks[0].calls.insert(ranks[0].calls.begin(), {"send", "pipeline", "0SEND_F9", 1, 8, 2, 2.5, false});
  ranks[1].calls.insert(ranks[1].calls.begin(), {"receive", "pipeline", "1RECV_F9", 0, 8, 1, 1, false});
  EXPECT_DOUBLE_EQ(phases_of(ranks).stage_wait, 1.5) << "the second receive is of the second send, at 4";
}

} // namespace
} // namespace triax::compare
