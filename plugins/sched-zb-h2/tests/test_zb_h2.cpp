// SPDX-License-Identifier: Apache-2.0
// The rows of sched-zb-h2, loaded as a plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using test::row_texts;
using ::testing::ElementsAre;

class ZeroBubbleH2 : public ::testing::Test {
 protected:
  test::LoadedScheduler scheduler_{"sched-zb-h2"};
};

TEST_F(ZeroBubbleH2, RunsAheadAndHoldsBackTwiceAsMuch) {
  const Schedule schedule = scheduler_->rows({3, 1, 6});
  EXPECT_THAT(row_texts(schedule),
              ElementsAre("0F0 0F1 0F2 0F3 0F4 0I0 0W0 0F5 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5",
                          "1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1F5 1I3 1W1 1I4 1W2 1I5 1W3 1W4 1W5",
                          "2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2F5 2I5 2W1 2W2 2W3 2W4 2W5"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1, 2}}));
}

TEST_F(ZeroBubbleH2, OneStageHoldsBackNothing) {
  EXPECT_THAT(row_texts(scheduler_->rows({1, 1, 2})), ElementsAre("0F0 0I0 0W0 0F1 0I1 0W1"));
}

TEST_F(ZeroBubbleH2, FewMicrobatchesAreHeldBackWhole) {
  EXPECT_THAT(row_texts(scheduler_->rows({3, 1, 2})),
              ElementsAre("0F0 0F1 0I0 0W0 0I1 0W1", "1F0 1F1 1I0 1I1 1W0 1W1", "2F0 2I0 2F1 2I1 2W0 2W1"));
}

TEST_F(ZeroBubbleH2, RefusesSeveralChunks) {
  EXPECT_TRUE(scheduler_->supports({4, 1, 7}).empty());
  EXPECT_TRUE(scheduler_->supports({7, 1, 4}).empty());
  const Refusals support = scheduler_->supports({4, 2, 8});
  EXPECT_FALSE(support.empty());
  EXPECT_EQ(support.front().message, "parallel.chunks = 2: sched-zb-h2 gives each pipeline rank one chunk");
  EXPECT_EQ(support.front().hint, "use parallel.chunks 1, or sched-zb-v with parallel.chunks 2");
}

} // namespace
