// The rows of sched-gpipe, asked for through the plugin's door.
#include <gtest/gtest.h>

#include <string>

#include "plugin/loader.hpp"
#include "triax/scheduler.hpp"

namespace {
using namespace triax;

class GPipe : public ::testing::Test {
 protected:
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  PluginContext context_{options_, null_log(), layout_};
  plugin::Instance<Scheduler> scheduler_ = plugin::create<Scheduler>(
      plugin::load(TRIAX_BINARY_DIR "/lib/triax/plugins/sched-gpipe.so", "scheduler"), context_);

  std::string row(const Schedule& schedule, int rank) {
    std::string text;
    for (const Action& action : schedule.row(rank)) text += (text.empty() ? "" : " ") + to_text(action);
    return text;
  }
};

TEST_F(GPipe, AllForwardsThenAllBackwardsInAscendingOrder) {
  const Schedule schedule = scheduler_->rows({2, 1, 3});
  ASSERT_EQ(schedule.ranks(), 2);
  EXPECT_EQ(row(schedule, 0), "0F0 0F1 0F2 0B0 0B1 0B2");
  EXPECT_EQ(row(schedule, 1), "1F0 1F1 1F2 1B0 1B1 1B2");
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1}}));
  EXPECT_EQ(schedule.delay, 0);
}

TEST_F(GPipe, OneStageOneMicrobatch) {
  const Schedule schedule = scheduler_->rows({1, 1, 1});
  ASSERT_EQ(schedule.ranks(), 1);
  EXPECT_EQ(row(schedule, 0), "0F0 0B0");
}

TEST_F(GPipe, RefusesChunksInWords) {
  EXPECT_TRUE(scheduler_->supports({4, 1, 7}));
  const Support support = scheduler_->supports({4, 2, 8});
  EXPECT_FALSE(support);
  EXPECT_EQ(support.reason(), "parallel.chunks = 2: sched-gpipe gives each pipeline rank one chunk");
  EXPECT_NE(support.hint().find("parallel.chunks 1"), std::string::npos);
}

} // namespace
