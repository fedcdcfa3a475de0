// SPDX-License-Identifier: Apache-2.0
// Which failure is the root cause of a job, and the states of its ranks.
#include <gmock/gmock.h>

#include <chrono>
#include <optional>
#include <vector>

#include "control/rank_registry.hpp"

namespace triax::control {
namespace {

using std::chrono::milliseconds;
using State = RankStatus::State;

struct RosterTest : ::testing::Test {
  RosterTest() {
    for (int rank = 0; rank < 3; ++rank) {
      Hello hello;
      hello.rank = rank;
      hello.world = 3;
      roster.came(hello, start);
    }
  }
  Deadline after(int ms) const { return start + milliseconds(ms); }

  const Deadline start{milliseconds(1)};
  RankRegistry roster{3};
};

TEST_F(RosterTest, TheFirstFailureIsToldAndStays) {
  EXPECT_FALSE(roster.failure());
  EXPECT_EQ(roster.failed_at(), std::nullopt);
  EXPECT_TRUE(roster.note({2, false, "no memory"}, after(0)));
  EXPECT_FALSE(roster.note({0, false, "rank 2 went"}, after(1)));
  EXPECT_FALSE(roster.note({-1, true, "a node went down"}, after(5000)));
  EXPECT_EQ(roster.failure()->rank, 2);
  EXPECT_EQ(roster.failure()->why, "no memory");
  EXPECT_EQ(roster.failed_at(), after(0));
}

TEST_F(RosterTest, ALossSoonAfterIsWhatTheOtherNoticed) {
  EXPECT_TRUE(roster.note({0, false, "the connection to rank 2 broke"}, after(0)));
  EXPECT_FALSE(roster.note({2, true, "the connection was closed"}, after(1000))); // the failure has already been sent
  EXPECT_EQ(roster.failure()->rank, 2);
  EXPECT_TRUE(roster.failure()->lost);
  EXPECT_EQ(roster.failed_at(), after(0));
  roster.note({1, true, "the connection was closed"}, after(1000));
  EXPECT_EQ(roster.failure()->rank, 2);
}

TEST_F(RosterTest, WhomATimedOutRankWaitedForIsTheCause) {
  roster.is_at(1, "step 3, 1F0, in gemm() of plugin \"slow\" for 4 s", after(0), {.stalled_s = 4});
  roster.is_at(2, "step 3, 2F0, in add() of plugin \"slow\" for 1 s", after(0), {.stalled_s = 1});
  roster.timed_out(0);
  roster.knows(0);
  EXPECT_TRUE(roster.note({0, false, "timed out"}, after(500)));
  EXPECT_EQ(roster.failure()->rank, 1);
  EXPECT_TRUE(roster.failure()->stuck);
  EXPECT_EQ(roster.failure()->why,
            "no progress for 4 s, and others wait for it: step 3, 1F0, in gemm() of plugin \"slow\" for 4 s");
  roster.note({0, true, "ended with status 1"}, after(600)); // the rank that timed out is a victim, not a cause
  EXPECT_EQ(roster.failure()->rank, 1);
}

TEST_F(RosterTest, RanksThatAllWaitCannotGoOn) {
  constexpr double kLimit = 10;
  roster.is_at(0, "step 3, 0F0", after(0), {.waiting_s = 11});
  roster.is_at(1, "step 3, 1F0", after(0), {.waiting_s = 12.04});
  EXPECT_FALSE(roster.all_wait(kLimit)); // rank 2 works
  roster.is_at(2, "step 3, 2F0", after(0), {.waiting_s = 9});
  EXPECT_FALSE(roster.all_wait(kLimit));
  roster.is_at(2, "step 3, 2F0", after(0), {.waiting_s = 10});
  const std::optional<Failure> failure = roster.all_wait(kLimit);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_TRUE(failure->stuck);
  EXPECT_EQ(failure->why, "all ranks wait, and none makes progress; this one has waited for 12 s");
  roster.note({2, false, "no memory"}, after(0));
  EXPECT_FALSE(roster.all_wait(kLimit)); // the job has failed already
}

TEST_F(RosterTest, ThePositionOfARankThatHasLeftIsItsEnd) {
  roster.is_at(0, "step 3, 0B3", after(0));
  roster.is_at(1, "step 3, 1B3", after(0));
  roster.left(0);
  roster.note({2, true, "its connection closed"}, after(100));
  roster.left(1);
  const std::vector<RankStatus> ranks = roster.statuses(after(200));
  EXPECT_EQ(ranks[0].place, "finished");
  EXPECT_EQ(ranks[1].place, "step 3, 1B3"); // where it was when rank 2 was lost
}

TEST_F(RosterTest, ARankInALongCallIsNotTheCauseOfAnotherError) {
  roster.is_at(1, "step 3, 1F0", after(0), {.stalled_s = 4});
  roster.note({0, false, "no memory"}, after(0));
  EXPECT_EQ(roster.failure()->rank, 0);
}

TEST_F(RosterTest, WhereAllRanksMakeProgressATimeoutIsTheCause) {
  roster.is_at(1, "step 3, 1F0", after(0), {.stalled_s = 0.4});
  roster.timed_out(0);
  roster.note({0, false, "timed out"}, after(0));
  EXPECT_EQ(roster.failure()->rank, 0);
}

TEST_F(RosterTest, ALossLaterIsAConsequence) {
  roster.note({0, false, "no memory"}, after(0));
  roster.note({2, true, "the connection was closed"}, after(1001));
  EXPECT_EQ(roster.failure()->rank, 0);
}

TEST_F(RosterTest, WhoKnewOfTheFailureWasNoCause) {
  roster.note({0, false, "no memory"}, after(0));
  roster.knows(2);
  roster.note({2, true, "the connection was closed"}, after(10));
  EXPECT_EQ(roster.failure()->rank, 0);
  roster.note({0, true, "the connection was closed"}, after(20)); // it failed first, and then ended
  EXPECT_FALSE(roster.failure()->lost);
}

TEST_F(RosterTest, StatesAndSilence) {
  roster.heard(1, after(500));
  EXPECT_TRUE(roster.silent(0, 0.9, after(1000)));
  EXPECT_FALSE(roster.silent(1, 0.9, after(1000)));
  roster.note({1, true, "no message from it for 1 s"}, after(1500));
  roster.left(2);
  const auto all = roster.statuses(after(2000));
  EXPECT_EQ(all[0].state, State::here);
  EXPECT_EQ(all[0].silent_s, 2);
  EXPECT_EQ(all[1].state, State::lost);
  EXPECT_EQ(all[1].silent_s, 1); // ends when it was lost
  EXPECT_EQ(all[2].state, State::left);
}

TEST_F(RosterTest, HowOldThePlaceOfALostRankWas) {
  roster.is_at(1, "step 2, 0F0", after(200));
  roster.heard(1, after(900)); // another message
  roster.note({1, true, "the connection was closed"}, after(1200));
  roster.note({2, true, "the connection was closed"}, after(1500)); // it had not sent a position
  const auto all = roster.statuses(after(2000));
  EXPECT_EQ(all[1].place, "step 2, 0F0");
  EXPECT_EQ(all[1].place_age_s, 1);
  EXPECT_EQ(all[2].place_age_s, 1.5);
  EXPECT_EQ(all[0].place_age_s, 0) << "it lives";
}

TEST_F(RosterTest, WhileNobodyListenedNobodyWasSilent) {
  roster.excuse(milliseconds(4000), after(4000));
  EXPECT_FALSE(roster.silent(0, 1.1, after(5000)));
  EXPECT_TRUE(roster.silent(0, 0.9, after(5000)));
}

TEST_F(RosterTest, WhatRanksNoticeOfAServerThatDidNotRunIsNotTheirFailure) {
  const Failure given_up{1, false, "the connection to rank 2 closed"};
  EXPECT_EQ(roster.cause_of(given_up, 2.1, 2, after(5000)).rank, 1) << "the server has run";
  roster.excuse(milliseconds(3210), after(5000));
  EXPECT_EQ(roster.cause_of(given_up, 0.4, 2, after(5000)).rank, 1) << "it heard the server shortly before";
  EXPECT_EQ(roster.cause_of(given_up, 5.5, 600, after(5000)).rank, 1) << "the server was away for a small part of that";
  const Failure cause = roster.cause_of(given_up, 1.9, 2, after(5000));
  EXPECT_EQ(roster.cause_of(given_up, 2.1, 2, after(60000)).rank, 1) << "the server has run since";
  EXPECT_EQ(cause.rank, kNoRank);
  EXPECT_EQ(
      cause.why,
      "the job server did not run for 3.2 s (its process was stopped, or its machine suspended), and the ranks gave "
      "up after train.stall_timeout_s = 2 s without an answer");
  EXPECT_TRUE(roster.note(cause, after(5000)));
  roster.note({1, true, "ended with status 1"}, after(5000));
  EXPECT_EQ(roster.failure()->rank, kNoRank);
  // This rank failed by itself, before the others missed the server.
  roster.note({2, false, "no memory"}, after(5001));
  EXPECT_EQ(roster.failure()->rank, 2);
}

TEST_F(RosterTest, WhoHasNotJoined) {
  RankRegistry other{4};
  Hello hello;
  hello.world = 4;
  hello.rank = 2;
  other.came(hello, start);
  EXPECT_EQ(other.joined(), 1);
  EXPECT_EQ(other.missing(), (std::vector<int>{0, 1, 3}));
  other.left(2);
  other.came(hello, after(1));
  EXPECT_EQ(other.joined(), 1);
}

TEST_F(RosterTest, WhoMayComeIn) {
  Hello hello;
  hello.world = 3;
  hello.rank = 1;
  EXPECT_THAT(roster.refusal(hello), ::testing::HasSubstr("rank 1 is here already"));
  roster.left(1);
  EXPECT_EQ(roster.refusal(hello), "");
  roster.note({2, true, "the connection was closed"}, after(0));
  hello.rank = 2;
  EXPECT_EQ(roster.refusal(hello), "rank 2 was lost, and cannot come back");
  hello.rank = 3;
  EXPECT_EQ(roster.refusal(hello), "rank 3 does not exist: this job has ranks 0 to 2");
}

} // namespace
} // namespace triax::control
