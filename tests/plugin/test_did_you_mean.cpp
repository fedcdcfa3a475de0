// SPDX-License-Identifier: Apache-2.0
// Edit distance, and suggestions for misspelled names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/did_you_mean.hpp"

namespace triax::plugin {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("timeout_s", "timeout_s"), 0);
  EXPECT_EQ(edit_distance("timout_s", "timeout_s"), 1);
  EXPECT_EQ(edit_distance("timeoutt_s", "timeout_s"), 1);
  EXPECT_EQ(edit_distance("sched-1f1p", "sched-1f1b"), 1);
  EXPECT_EQ(edit_distance("shced", "sched"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
}

TEST(Nearest, OrdersByDistanceThenAlphabetAndStopsAtThree) {
  EXPECT_THAT(nearest("comm-upx", {"comm-mpi", "comm-ucx", "sched-1f1b"}), ElementsAre("comm-ucx", "comm-mpi"));
  EXPECT_THAT(nearest("aaaaaaaaa", {"aaaaaaaad", "aaaaaaaac", "aaaaaaaab", "aaaaaaaaa"}),
              ElementsAre("aaaaaaaab", "aaaaaaaac", "aaaaaaaad"));
  EXPECT_THAT(nearest("lr", {"lx", "lx", "la"}), ElementsAre("la", "lx"));
}

/// "schedule.plugin "sched-a" was not found; did you mean "sched-a"?" would not help.
TEST(Nearest, NeverNamesTheNameItself) {
  EXPECT_THAT(nearest("lr", {"lr", "lr", "lx"}), ElementsAre("lx"));
  EXPECT_THAT(nearest("base.toml", {"base.toml"}), IsEmpty());
}

TEST(Nearest, DoesNotGuessWildly) {
  EXPECT_THAT(nearest("lr", {"weight_decay", "eps"}), IsEmpty());
  EXPECT_THAT(nearest("", {"abcdef"}), IsEmpty());
}

} // namespace

} // namespace triax::plugin
