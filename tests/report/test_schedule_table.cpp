// Schedules drawn as text.
#include <gtest/gtest.h>

#include "report/schedule_table.hpp"
#include "schedule/rows.hpp"
#include "schedule/timing.hpp"

namespace {
using namespace triax;
using test::schedule_of;

std::string drawn(const PipelineShape& shape, std::vector<int> stage_rank, const std::vector<std::string>& rows) {
  const Schedule schedule = schedule_of(shape, std::move(stage_rank), rows);
  return report::schedule_table(schedule, schedule::end_times(schedule));
}

TEST(ScheduleTable, ABoxIsAsLongAsItsSlots) {
  EXPECT_EQ(drawn({2, 1, 2}, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), //
            "slot    0              5\n"
            "rank 0 |F0|F1|     |B0   |  |B1   |\n"
            "rank 1    |F0|B0   |F1|B1   |\n"
            "idle slots of 9, by rank: 3 3\n"
            "peak of microbatches in flight, by rank: 2 1\n");
}

TEST(ScheduleTable, BoxesNameTheStageWhereARankHoldsSeveral) {
  EXPECT_EQ(drawn({1, 2, 1}, {0, 0}, {"0F0 1F0 1I0 1W0 0B0"}), //
            "slot    0                   5\n"
            "rank 0 |0F0|1F0|1I0|1W0|0B0    |\n"
            "idle slots of 6, by rank: 0\n"
            "peak of microbatch chunks in flight, by rank: 2\n");
}

TEST(ScheduleTable, BoxesNameTheStageWhereItIsNotTheRank) {
  EXPECT_EQ(drawn({2, 1, 1}, {1, 0}, {"1F0 1B0", "0F0 0B0"}), //
            "slot    0                   5\n"
            "rank 0     |1F0|1B0    |\n"
            "rank 1 |0F0|           |0B0    |\n"
            "idle slots of 6, by rank: 3 3\n"
            "peak of microbatches in flight, by rank: 1 1\n");
}

} // namespace
