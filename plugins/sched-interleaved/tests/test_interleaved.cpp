// SPDX-License-Identifier: Apache-2.0
// The rows of sched-interleaved, loaded as a plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using test::row_texts;
using ::testing::ElementsAre;

class Interleaved : public ::testing::Test {
 protected:
  test::LoadedScheduler scheduler_{"sched-interleaved"};
};

// Figure 4 (bottom) of SC'21: four devices with two chunks each, eight microbatches; the figure counts from 1.
TEST_F(Interleaved, DrawsTheFigureOfThePaper) {
  const Schedule schedule = scheduler_->rows({4, 2, 8});
  EXPECT_THAT(row_texts(schedule),
              ElementsAre("0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 "
                          "0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 0B1 "
                          "0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7",
                          "1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3 "
                          "1F4 5B0 1F5 5B1 1F6 5B2 1F7 5B3 5F4 1B0 5F5 1B1 5F6 1B2 5F7 1B3 "
                          "5B4 5B5 5B6 5B7 1B4 1B5 1B6 1B7",
                          "2F0 2F1 2F2 2F3 6F0 6F1 "
                          "6F2 6B0 6F3 6B1 2F4 6B2 2F5 6B3 2F6 2B0 2F7 2B1 6F4 2B2 6F5 2B3 6F6 6B4 6F7 6B5 "
                          "6B6 6B7 2B4 2B5 2B6 2B7",
                          "3F0 3F1 3F2 3F3 "
                          "7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3F4 3B0 3F5 3B1 3F6 3B2 3F7 3B3 7F4 7B4 7F5 7B5 7F6 7B6 7F7 "
                          "7B7 3B4 3B5 3B6 3B7"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1, 2, 3, 0, 1, 2, 3}}));
}

TEST_F(Interleaved, OneRankTakesAMicrobatchThroughAllChunksAtOnce) {
  const Schedule schedule = scheduler_->rows({1, 3, 2});
  EXPECT_THAT(row_texts(schedule), ElementsAre("0F0 1F0 2F0 2B0 0F1 1B0 1F1 0B0 2F1 2B1 1B1 0B1"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 0, 0}}));
  EXPECT_THAT(row_texts(scheduler_->rows({1, 2, 1})), ElementsAre("0F0 1F0 1B0 0B0"));
}

TEST_F(Interleaved, WarmUpIsAllThereIsInOneGroup) {
  EXPECT_THAT(row_texts(scheduler_->rows({2, 2, 2})),
              ElementsAre("0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"));
}

TEST_F(Interleaved, RefusesMicrobatchesThatDoNotFillGroups) {
  EXPECT_TRUE(scheduler_->supports({4, 2, 8}).empty());
  EXPECT_TRUE(scheduler_->supports({4, 7, 4}).empty());
  EXPECT_TRUE(scheduler_->supports({1, 2, 7}).empty());
  const Refusals six = scheduler_->supports({4, 2, 6});
  EXPECT_FALSE(six.empty());
  EXPECT_EQ(six.front().message,
            "m = 6 microbatches are not divisible by p = 4 pipeline ranks, as sched-interleaved requires");
  EXPECT_EQ(six.front().hint,
            "set batch.global / (parallel.data x batch.micro) to 4 or 8, or use schedule.group 6, or "
            "sched-1f1b with parallel.chunks 1");
  const test::LoadedScheduler in_groups("sched-interleaved", {{"group", 6}});
  EXPECT_TRUE(in_groups->supports({4, 2, 6}).empty()) << "as the hint says";
  EXPECT_EQ(scheduler_->supports({4, 2, 3}).front().hint,
            "set batch.global / (parallel.data x batch.micro) to 4, or use sched-1f1b with parallel.chunks 1");
}

TEST_F(Interleaved, RefusesASingleChunk) {
  const Refusals support = scheduler_->supports({4, 1, 8});
  EXPECT_FALSE(support.empty());
  EXPECT_EQ(support.front().message,
            "parallel.chunks = 1: sched-interleaved needs two or more chunks on each pipeline rank");
  EXPECT_EQ(support.front().hint, "use parallel.chunks 2, or sched-1f1b");
}

// The option `group` is Megatron-LM's microbatch_group_size_per_vp_stage.
TEST(InterleavedInGroups, MoreMicrobatchesPassAChunkBeforeTheNext) {
  const test::LoadedScheduler three("sched-interleaved", {{"group", 3}});
  EXPECT_THAT(row_texts(three->rows({2, 2, 5})),
              ElementsAre("0F0 0F1 0F2 2F0 2F1 2F2 2B0 0F3 2B1 0F4 2B2 2F3 0B0 2F4 0B1 0B2 2B3 2B4 0B3 0B4",
                          "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4"));
}

TEST(InterleavedInGroups, OfSizePAreTheDefault) {
  const test::LoadedScheduler plain("sched-interleaved"), four("sched-interleaved", {{"group", 4}});
  EXPECT_EQ(row_texts(plain->rows({4, 3, 12})), row_texts(four->rows({4, 3, 12})));
}

TEST(InterleavedInGroups, RefusesGroupsThatWouldWait) {
  const test::LoadedScheduler five("sched-interleaved", {{"group", 5}});
  EXPECT_TRUE(five->supports({4, 2, 10}).empty());
  EXPECT_TRUE(five->supports({4, 2, 14}).empty()); // groups of 5, 5 and 4
  const Refusals leaves = five->supports({4, 2, 12});
  EXPECT_FALSE(leaves.empty());
  EXPECT_EQ(leaves.front().message,
            "schedule.group = 5 leaves 2 of m = 12 microbatches to the last group, which needs at least p = 4");
  EXPECT_EQ(leaves.front().hint, "use schedule.group 12, or a group after which 0 or at least 4 microbatches are left");
  const Refusals few = five->supports({8, 2, 16}), many = five->supports({4, 2, 4}), none = five->supports({4, 2, 3});
  EXPECT_FALSE(few.empty());
  EXPECT_EQ(few.front().message,
            "schedule.group must be in [8, 16], got 5: from p = 8 pipeline ranks to m = 16 microbatches");
  EXPECT_EQ(few.front().hint, "use schedule.group 8");
  EXPECT_FALSE(many.empty());
  EXPECT_EQ(many.front().hint, "use schedule.group 4");
  EXPECT_FALSE(none.empty());
  EXPECT_EQ(none.front().message,
            "m = 3 microbatches are not divisible by p = 4 pipeline ranks, as sched-interleaved requires");
}

} // namespace
