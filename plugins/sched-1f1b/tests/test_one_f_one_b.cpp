// SPDX-License-Identifier: Apache-2.0
// The rows of sched-1f1b, loaded as a plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using test::row_texts;
using ::testing::ElementsAre;

class OneForwardOneBackward : public ::testing::Test {
 protected:
  test::LoadedScheduler scheduler_{"sched-1f1b"};
};

// Figure 4 (top) of SC'21: four devices, eight microbatches; the figure counts from 1.
TEST_F(OneForwardOneBackward, DrawsTheFigureOfThePaper) {
  const Schedule schedule = scheduler_->rows({4, 1, 8});
  EXPECT_THAT(row_texts(schedule), ElementsAre("0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7",
                                               "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7",
                                               "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7",
                                               "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1, 2, 3}}));
}

TEST_F(OneForwardOneBackward, OneStageHasNoWarmUp) {
  EXPECT_THAT(row_texts(scheduler_->rows({1, 1, 1})), ElementsAre("0F0 0B0"));
  EXPECT_THAT(row_texts(scheduler_->rows({1, 1, 3})), ElementsAre("0F0 0B0 0F1 0B1 0F2 0B2"));
}

TEST_F(OneForwardOneBackward, WarmUpIsAllThereIsWithFewMicrobatches) {
  EXPECT_THAT(row_texts(scheduler_->rows({3, 1, 1})), ElementsAre("0F0 0B0", "1F0 1B0", "2F0 2B0"));
  EXPECT_THAT(row_texts(scheduler_->rows({4, 1, 2})),
              ElementsAre("0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1", "2F0 2F1 2B0 2B1", "3F0 3B0 3F1 3B1"));
}

TEST_F(OneForwardOneBackward, RefusesSeveralChunks) {
  EXPECT_TRUE(scheduler_->supports({4, 1, 7}).empty());
  EXPECT_TRUE(scheduler_->supports({7, 1, 4}).empty());
  const Refusals support = scheduler_->supports({4, 2, 8});
  EXPECT_FALSE(support.empty());
  EXPECT_EQ(support.front().message, "parallel.chunks = 2: sched-1f1b gives each pipeline rank one chunk");
  EXPECT_EQ(support.front().hint, "use parallel.chunks 1, or sched-interleaved");
}

} // namespace
