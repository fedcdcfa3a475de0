// SPDX-License-Identifier: Apache-2.0
// The rows of sched-gpipe, loaded as a plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using test::row_texts;
using ::testing::ElementsAre;

class GPipe : public ::testing::Test {
 protected:
  test::LoadedScheduler scheduler_{"sched-gpipe"};
};

TEST_F(GPipe, AllForwardsThenAllBackwardsInAscendingOrder) {
  const Schedule schedule = scheduler_->rows({2, 1, 3});
  EXPECT_THAT(row_texts(schedule), ElementsAre("0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1}}));
}

TEST_F(GPipe, OneStageOneMicrobatch) {
  EXPECT_THAT(row_texts(scheduler_->rows({1, 1, 1})), ElementsAre("0F0 0B0"));
}

TEST_F(GPipe, RefusesSeveralChunks) {
  EXPECT_TRUE(scheduler_->supports({4, 1, 7}).empty());
  const Refusals support = scheduler_->supports({4, 2, 8});
  EXPECT_FALSE(support.empty());
  EXPECT_EQ(support.front().message, "parallel.chunks = 2: sched-gpipe gives each pipeline rank one chunk");
  EXPECT_EQ(support.front().hint, "use parallel.chunks 1, or sched-interleaved");
}

} // namespace
