// SPDX-License-Identifier: Apache-2.0
// The rows of sched-zb-v, loaded as a plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using test::row_texts;
using ::testing::ElementsAre;

class ZeroBubbleV : public ::testing::Test {
 protected:
  test::LoadedScheduler scheduler_{"sched-zb-v"};
};

TEST_F(ZeroBubbleV, GoesDownAndUpTheRanks) {
  const Schedule schedule = scheduler_->rows({3, 2, 6});
  EXPECT_THAT(row_texts(schedule),
              ElementsAre("0F0 0F1 0F2 0F3 0F4 5F0 5I0 5W0 5F1 5I1 5W1 5F2 5I2 5W2 "
                          "0F5 0I0 0W0 5F3 5I3 5W3 0I1 0W1 5F4 5I4 5W4 0I2 0W2 5F5 5I5 5W5 "
                          "0I3 0W3 0I4 0W4 0I5 0W5",
                          "1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 4I1 4W1 "
                          "1F4 1I0 1W0 4F3 4I2 4W2 1F5 1I1 1W1 4F4 4I3 4W3 1I2 1W2 4F5 4I4 4W4 "
                          "1I3 4I5 1I4 1W3 1I5 1W4 4W5 1W5",
                          "2F0 3F0 2F1 3F1 2F2 3F2 3I0 3W0 "
                          "2F3 2I0 2W0 3F3 3I1 3W1 2F4 2I1 2W1 3F4 3I2 3W2 2F5 2I2 2W2 3F5 3I3 3W3 "
                          "2I3 3I4 2I4 3I5 2I5 2W3 3W4 3W5 2W4 2W5"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1, 2, 2, 1, 0}}));
}

TEST_F(ZeroBubbleV, OneRankHasBothStages) {
  const Schedule schedule = scheduler_->rows({1, 2, 2});
  EXPECT_THAT(row_texts(schedule), ElementsAre("0F0 1F0 1I0 1W0 0F1 0I0 0W0 1F1 1I1 1W1 0I1 0W1"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 0}}));
}

TEST_F(ZeroBubbleV, FewMicrobatchesKeepTheOrder) {
  EXPECT_THAT(row_texts(scheduler_->rows({2, 2, 1})),
              ElementsAre("0F0 3F0 3I0 3W0 0I0 0W0", "1F0 2F0 2I0 2W0 1I0 1W0"));
}

TEST_F(ZeroBubbleV, RefusesChunksOtherThanTwo) {
  EXPECT_TRUE(scheduler_->supports({4, 2, 7}).empty());
  EXPECT_TRUE(scheduler_->supports({7, 2, 1}).empty());
  const Refusals one = scheduler_->supports({4, 1, 8}), three = scheduler_->supports({4, 3, 8});
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(one.front().message, "parallel.chunks = 1: sched-zb-v gives each pipeline rank two chunks");
  EXPECT_EQ(one.front().hint, "use parallel.chunks 2, or sched-zb-h1");
  EXPECT_FALSE(three.empty());
  EXPECT_EQ(three.front().hint, "use parallel.chunks 2");
}

} // namespace
