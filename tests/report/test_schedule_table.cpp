// SPDX-License-Identifier: Apache-2.0
// Schedules as text tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "draw/schedule_table.hpp"
#include "os/terminal.hpp"
#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "support/error_of.hpp"

namespace {
using namespace triax;
using test::schedule_of;

std::string drawn(const PipelineShape& shape, std::vector<int> stage_rank, const std::vector<std::string>& rows,
                  const draw::TableStyle& style = {}) {
  const std::vector<schedule::Program> programs =
      schedule::lower(schedule_of(shape, std::move(stage_rank), rows), shape);
  const schedule::Costs units{{static_cast<std::size_t>(shape.stages()), {1, 1, 1}}};
  return draw::schedule_table(
      schedule::planned(programs, schedule::simulate(programs, units), shape, schedule::Timeline::Unit::pass), style);
}

TEST(ScheduleTable, ABoxIsAsLongAsItsSlots) {
  EXPECT_EQ(drawn({2, 1, 2}, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), //
            "time    0              5\n"
            "rank 0 |F0|F1|     |B0   |  |B1   |\n"
            "rank 1    |F0|B0   |F1|B1   |\n"
            "idle, of 9 units of time, by rank: 3 3\n"
            "peak of microbatches in flight, by rank: 2 1\n");
}

/// R fills the time in which a rank waits for its gradient.
TEST(ScheduleTable, RecomputationHasABox) {
  const PipelineShape shape{2, 1, 2};
  const std::vector<schedule::Program> programs =
      schedule::lower(schedule_of(shape, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), shape,
                      schedule::Boundaries::whole, schedule::Sharding::none, schedule::kDefaultPrefetch, {true, false});
  const schedule::Costs units{{{1, 1, 1, 1}, {1, 1, 1}}};
  const schedule::Timeline timeline =
      schedule::planned(programs, schedule::simulate(programs, units), shape, schedule::Timeline::Unit::pass);
  EXPECT_EQ(draw::schedule_table(timeline, {}),
            "time    0              5\n"
            "rank 0 |F0|F1|R0|  |B0   |R1|B1   |\n"
            "rank 1    |F0|B0   |F1|B1   |\n"
            "idle, of 9 units of time, by rank: 1 3\n"
            "peak of microbatches in flight, by rank: 2 1\n");
}

TEST(ScheduleTable, BoxesNameTheStageWhereARankHoldsSeveral) {
  EXPECT_EQ(drawn({1, 2, 1}, {0, 0}, {"0F0 1F0 1I0 1W0 0B0"}), //
            "time    0                   5\n"
            "rank 0 |0F0|1F0|1I0|1W0|0B0    |\n"
            "idle, of 6 units of time, by rank: 0\n"
            "peak of microbatch chunks in flight, by rank: 2\n");
}

TEST(ScheduleTable, BoxesNameTheStageWhereItIsNotTheRank) {
  EXPECT_EQ(drawn({2, 1, 1}, {1, 0}, {"1F0 1B0", "0F0 0B0"}), //
            "time    0                   5\n"
            "rank 0     |1F0|1B0    |\n"
            "rank 1 |0F0|           |0B0    |\n"
            "idle, of 6 units of time, by rank: 3 3\n"
            "peak of microbatches in flight, by rank: 1 1\n");
}

std::string without_colours(std::string drawn) {
  return std::regex_replace(drawn, std::regex("\x1b\\[[0-9;]*m"), "");
}

TEST(ScheduleTable, ColoursAreThoseOfPicturesAndMoveNothing) {
  const std::vector<std::string> rows = {"0F0 1F0 1I0 1W0 0B0"};
  const std::string coloured = drawn({1, 2, 1}, {0, 0}, rows, {.colour = true});
  EXPECT_EQ(without_colours(coloured), drawn({1, 2, 1}, {0, 0}, rows));
  EXPECT_THAT(coloured,
              ::testing::HasSubstr("rank 0 |\x1b[38;5;231;48;5;25m0F0\x1b[0m|"));    // dark blue: the first chunk
  EXPECT_THAT(coloured, ::testing::HasSubstr("|\x1b[38;5;16;48;5;153m1F0\x1b[0m|")); // light blue: the second
}

const PipelineShape kTwoRanks{2, 1, 2};
const std::vector<std::string> kTwoRows = {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"};

/// The table has 35 columns: 8, and 3 for each of 9 time units.
TEST(ScheduleTable, FoldsIntoBlocksOfTimeThatFitTheTerminal) {
  EXPECT_THAT(drawn(kTwoRanks, {0, 1}, kTwoRows, {.columns = 35}),
              ::testing::HasSubstr("\nrank 0 |F0|F1|     |B0   |  |B1   |\n"));
  EXPECT_EQ(drawn(kTwoRanks, {0, 1}, kTwoRows, {.columns = 34, .folded = "use --output"}),
            "time    0\n"
            "rank 0 |F0|F1|     |B0>\n"
            "rank 1    |F0|B0   |F1|\n"
            "time    5\n"
            "rank 0 <  |  |B1   |\n"
            "rank 1 |B1   |\n"
            "idle, of 9 units of time, by rank:\n"
            "  3 3\n"
            "peak of microbatches in flight, by\n"
            "  rank: 2 1\n"
            "use --output\n");
}

/// Ten columns: one time unit per block; of nine blocks, the first three and the last are printed.
TEST(ScheduleTable, LeavesOutTheMiddleOfManyBlocks) {
  const std::string folded = drawn(kTwoRanks, {0, 1}, kTwoRows, {.columns = 10});
  EXPECT_THAT(folded, ::testing::StartsWith("time    0\nrank 0 |F0|\nrank 1 \ntime    1\n"));
  EXPECT_THAT(folded, ::testing::HasSubstr("\ntime 3 to 8 is left out\ntime    8\nrank 0 <  |\nrank 1 \n"));
}

TEST(ScheduleTable, FoldedBlocksKeepTheirColours) {
  const std::string coloured = drawn(kTwoRanks, {0, 1}, kTwoRows, {.colour = true, .columns = 34});
  EXPECT_EQ(without_colours(coloured), drawn(kTwoRanks, {0, 1}, kTwoRows, {.columns = 34}));
}

TEST(Terminal, FoldsWordsOfLongLines) {
  EXPECT_EQ(os::fold_words("  one two three four\nfive\n", 12), "  one two\n    three\n    four\nfive\n");
  EXPECT_EQ(os::fold_words("a-long-word and more", 5), "a-long-word\n  and\n  more");
  EXPECT_EQ(os::fold_words("one two", 0), "one two");
}

TEST(ScheduleTable, ATimelineOfMillisecondsHasNoSlots) {
  EXPECT_THAT(triax::test::error_of([] { draw::schedule_table({}); }),
              ::testing::HasSubstr("a table counts units of time"));
}

} // namespace
