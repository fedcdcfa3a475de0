// SPDX-License-Identifier: Apache-2.0
// The rows of sched-breadth-first, loaded as a plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using test::row_texts;
using ::testing::ElementsAre;

class BreadthFirst : public ::testing::Test {
 protected:
  test::LoadedScheduler scheduler_{"sched-breadth-first"};
};

TEST_F(BreadthFirst, AllMicrobatchesOfAChunkBeforeTheNext) {
  const Schedule schedule = scheduler_->rows({2, 2, 3});
  EXPECT_THAT(row_texts(schedule), ElementsAre("0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2",
                                               "1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1, 0, 1}}));
}

TEST_F(BreadthFirst, OneRankOrOneMicrobatch) {
  EXPECT_THAT(row_texts(scheduler_->rows({1, 3, 1})), ElementsAre("0F0 1F0 2F0 2B0 1B0 0B0"));
  EXPECT_THAT(row_texts(scheduler_->rows({2, 2, 1})), ElementsAre("0F0 2F0 2B0 0B0", "1F0 3F0 3B0 1B0"));
}

TEST_F(BreadthFirst, OneChunkIsGPipe) {
  EXPECT_THAT(row_texts(scheduler_->rows({2, 1, 2})), ElementsAre("0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"));
}

TEST_F(BreadthFirst, TakesEveryShape) {
  for (const PipelineShape& shape : {PipelineShape{1, 1, 1}, {4, 3, 2}, {4, 1, 7}, {16, 4, 64}})
    EXPECT_TRUE(scheduler_->supports(shape).empty());
}

} // namespace
