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

struct RankRegistryTest : ::testing::Test {
  RankRegistryTest() {
    for (int rank = 0; rank < 3; ++rank) {
      Hello hello;
      hello.rank = rank;
      hello.world = 3;
      registry.add(hello, start);
    }
  }
  Deadline after(int ms) const { return start + milliseconds(ms); }

  const Deadline start{milliseconds(1)};
  RankRegistry registry{3};
};

TEST_F(RankRegistryTest, TheFirstFailureIsReportedAndStays) {
  EXPECT_FALSE(registry.failure());
  EXPECT_EQ(registry.failed_at(), std::nullopt);
  EXPECT_TRUE(registry.note({2, false, "no memory"}, after(0)));
  EXPECT_FALSE(registry.note({0, false, "rank 2 went"}, after(1)));
  EXPECT_FALSE(registry.note({-1, true, "a node went down"}, after(5000)));
  EXPECT_EQ(registry.failure()->rank, 2);
  EXPECT_EQ(registry.failure()->why, "no memory");
  EXPECT_EQ(registry.failed_at(), after(0));
}

TEST_F(RankRegistryTest, TreatsALossSoonAfterAnErrorAsItsCause) {
  EXPECT_TRUE(registry.note({0, false, "the connection to rank 2 broke"}, after(0)));
  EXPECT_FALSE(registry.note({2, true, "the connection was closed"}, after(1000))); // the failure has already been sent
  EXPECT_EQ(registry.failure()->rank, 2);
  EXPECT_TRUE(registry.failure()->lost);
  EXPECT_EQ(registry.failed_at(), after(0));
  registry.note({1, true, "the connection was closed"}, after(1000));
  EXPECT_EQ(registry.failure()->rank, 2);
}

TEST_F(RankRegistryTest, BlamesTheRankThatATimedOutRankWaitedFor) {
  registry.set_position(1, "step 3, 1F0, in gemm() of plugin \"slow\" for 4 s", after(0), {.stalled_s = 4});
  registry.set_position(2, "step 3, 2F0, in add() of plugin \"slow\" for 1 s", after(0), {.stalled_s = 1});
  registry.timed_out(0);
  registry.set_seen_failure(0);
  EXPECT_TRUE(registry.note({0, false, "timed out"}, after(500)));
  EXPECT_EQ(registry.failure()->rank, 1);
  EXPECT_TRUE(registry.failure()->stuck);
  EXPECT_EQ(registry.failure()->why,
            "no progress for 4 s while other ranks wait for it: step 3, 1F0, in gemm() of plugin \"slow\" for 4 s");
  registry.note({0, true, "ended with status 1"}, after(600)); // the rank that timed out is a victim, not a cause
  EXPECT_EQ(registry.failure()->rank, 1);
}

TEST_F(RankRegistryTest, DetectsThatAllRanksWait) {
  constexpr double kLimit = 10;
  registry.set_position(0, "step 3, 0F0", after(0), {.waiting_s = 11});
  registry.set_position(1, "step 3, 1F0", after(0), {.waiting_s = 12.04});
  EXPECT_FALSE(registry.all_wait(kLimit)); // rank 2 works
  registry.set_position(2, "step 3, 2F0", after(0), {.waiting_s = 9});
  EXPECT_FALSE(registry.all_wait(kLimit));
  registry.set_position(2, "step 3, 2F0", after(0), {.waiting_s = 10});
  const std::optional<Failure> failure = registry.all_wait(kLimit);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_TRUE(failure->stuck);
  EXPECT_EQ(failure->why, "all ranks wait, but none makes progress; this one has waited for 12 s");
  registry.note({2, false, "no memory"}, after(0));
  EXPECT_FALSE(registry.all_wait(kLimit)); // the job has failed already
}

TEST_F(RankRegistryTest, ThePositionOfARankThatHasLeftIsItsEnd) {
  registry.set_position(0, "step 3, 0B3", after(0));
  registry.set_position(1, "step 3, 1B3", after(0));
  registry.left(0);
  registry.note({2, true, "its connection closed"}, after(100));
  registry.left(1);
  const std::vector<RankStatus> ranks = registry.statuses(after(200));
  EXPECT_EQ(ranks[0].position, "finished");
  EXPECT_EQ(ranks[1].position, "step 3, 1B3"); // where it was when rank 2 was lost
}

TEST_F(RankRegistryTest, ARankThatWaitedBeforeAFailureKeepsThatPosition) {
  registry.set_position(0, "step 3, 0F1, waiting for all_reduce", after(0), {.waiting_s = 4});
  registry.set_position(1, "step 3, 0F1, waiting for all_reduce", after(0), {.waiting_s = 0.1});
  registry.note({2, false, "no memory"}, after(100));
  registry.set_position(0, "step 3, 0F1", after(200));
  registry.set_position(1, "step 3, 0F2", after(200));
  const std::vector<RankStatus> ranks = registry.statuses(after(300));
  EXPECT_EQ(ranks[0].position, "step 3, 0F1, waiting for all_reduce");
  EXPECT_EQ(ranks[1].position, "step 3, 0F2");
}

TEST_F(RankRegistryTest, ARankInALongCallIsNotTheCauseOfAnotherError) {
  registry.set_position(1, "step 3, 1F0", after(0), {.stalled_s = 4});
  registry.note({0, false, "no memory"}, after(0));
  EXPECT_EQ(registry.failure()->rank, 0);
}

TEST_F(RankRegistryTest, WhereAllRanksMakeProgressATimeoutIsTheCause) {
  registry.set_position(1, "step 3, 1F0", after(0), {.stalled_s = 0.4});
  registry.timed_out(0);
  registry.note({0, false, "timed out"}, after(0));
  EXPECT_EQ(registry.failure()->rank, 0);
}

TEST_F(RankRegistryTest, ALossLaterIsAConsequence) {
  registry.note({0, false, "no memory"}, after(0));
  registry.note({2, true, "the connection was closed"}, after(1001));
  EXPECT_EQ(registry.failure()->rank, 0);
}

TEST_F(RankRegistryTest, DoesNotBlameARankThatKnewOfTheFailure) {
  registry.note({0, false, "no memory"}, after(0));
  registry.set_seen_failure(2);
  registry.note({2, true, "the connection was closed"}, after(10));
  EXPECT_EQ(registry.failure()->rank, 0);
  registry.note({0, true, "the connection was closed"}, after(20)); // it failed first, and then ended
  EXPECT_FALSE(registry.failure()->lost);
}

TEST_F(RankRegistryTest, StatesAndSilence) {
  registry.heard(1, after(500));
  EXPECT_TRUE(registry.silent(0, 0.9, after(1000)));
  EXPECT_FALSE(registry.silent(1, 0.9, after(1000)));
  registry.note({1, true, "no message from it for 1 s"}, after(1500));
  registry.left(2);
  const auto all = registry.statuses(after(2000));
  EXPECT_EQ(all[0].state, State::joined);
  EXPECT_EQ(all[0].silent_s, 2);
  EXPECT_EQ(all[1].state, State::lost);
  EXPECT_EQ(all[1].silent_s, 1); // ends when it was lost
  EXPECT_EQ(all[2].state, State::left);
}

TEST_F(RankRegistryTest, HowOldThePlaceOfALostRankWas) {
  registry.set_position(1, "step 2, 0F0", after(200));
  registry.heard(1, after(900)); // another message
  registry.note({1, true, "the connection was closed"}, after(1200));
  registry.note({2, true, "the connection was closed"}, after(1500)); // it had not sent a position
  const auto all = registry.statuses(after(2000));
  EXPECT_EQ(all[1].position, "step 2, 0F0");
  EXPECT_EQ(all[1].position_age_s, 1);
  EXPECT_EQ(all[2].position_age_s, 1.5);
  EXPECT_EQ(all[0].position_age_s, 0) << "it lives";
}

TEST_F(RankRegistryTest, ExcusesSilenceWhileTheServerDidNotRun) {
  registry.excuse(milliseconds(4000), after(4000));
  EXPECT_FALSE(registry.silent(0, 1.1, after(5000)));
  EXPECT_TRUE(registry.silent(0, 0.9, after(5000)));
}

TEST_F(RankRegistryTest, BlamesAServerThatDidNotRunForTimeoutsOfRanks) {
  const Failure reported{1, false, "the connection to rank 2 closed"};
  EXPECT_EQ(registry.cause_of(reported, 2.1, 2, after(5000)).rank, 1) << "the server has run";
  registry.excuse(milliseconds(3210), after(5000));
  EXPECT_EQ(registry.cause_of(reported, 0.4, 2, after(5000)).rank, 1) << "it heard the server shortly before";
  EXPECT_EQ(registry.cause_of(reported, 5.5, 600, after(5000)).rank, 1)
      << "the server was away for a small part of that";
  const Failure cause = registry.cause_of(reported, 1.9, 2, after(5000));
  EXPECT_EQ(registry.cause_of(reported, 2.1, 2, after(60000)).rank, 1) << "the server has run since";
  EXPECT_EQ(cause.rank, kNoRank);
  EXPECT_EQ(cause.why,
            "the job server did not run for 3.2 s (its process was stopped, or its machine suspended), and the ranks "
            "stopped after train.stall_timeout_s = 2 s without an answer");
  EXPECT_TRUE(registry.note(cause, after(5000)));
  registry.note({1, true, "ended with status 1"}, after(5000));
  EXPECT_EQ(registry.failure()->rank, kNoRank);
  // This rank failed by itself, before the others missed the server.
  registry.note({2, false, "no memory"}, after(5001));
  EXPECT_EQ(registry.failure()->rank, 2);
}

TEST_F(RankRegistryTest, ListsTheRanksThatHaveNotJoined) {
  RankRegistry other{4};
  Hello hello;
  hello.world = 4;
  hello.rank = 2;
  other.add(hello, start);
  EXPECT_EQ(other.joined(), 1);
  EXPECT_EQ(other.missing(), (std::vector<int>{0, 1, 3}));
  other.left(2);
  other.add(hello, after(1));
  EXPECT_EQ(other.joined(), 1);
}

TEST_F(RankRegistryTest, RefusesRanksThatCannotJoin) {
  Hello hello;
  hello.world = 3;
  hello.rank = 1;
  EXPECT_THAT(registry.refusal(hello), ::testing::HasSubstr("rank 1 has already joined"));
  registry.left(1);
  EXPECT_EQ(registry.refusal(hello), "rank 1 has left this job and cannot rejoin");
  registry.note({2, true, "the connection was closed"}, after(0));
  hello.rank = 2;
  EXPECT_EQ(registry.refusal(hello), "rank 2 was lost and cannot rejoin");
  hello.rank = 3;
  EXPECT_EQ(registry.refusal(hello), "rank 3 does not exist: this job has ranks 0 to 2");
}

} // namespace
} // namespace triax::control
