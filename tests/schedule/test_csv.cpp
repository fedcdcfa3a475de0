// SPDX-License-Identifier: Apache-2.0
// Writing schedules as CSV in PyTorch's format.
#include <gtest/gtest.h>

#include "csv/program_csv.hpp"
#include "schedule/rows.hpp"

namespace {
using namespace triax;
using test::schedule_of;

TEST(Csv, OneRowPerRankOneActionPerCell) {
  EXPECT_EQ(schedule::to_csv(schedule_of({2, 2, 1}, {0, 1, 0, 1}, {"0F0 2F0 2B0 0B0", "1F0 3F0 3I0 3W0 1B0"})),
            "0F0,2F0,2B0,0B0\n1F0,3F0,3I0,3W0,1B0\n");
}

TEST(Csv, ARankWithoutActionsIsAnEmptyRow) {
  EXPECT_EQ(schedule::to_csv(schedule_of({2, 1, 1}, {0, 1}, {"0F0", ""})), "0F0\n\n");
}

} // namespace
