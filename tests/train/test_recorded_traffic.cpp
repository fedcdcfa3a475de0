// SPDX-License-Identifier: Apache-2.0
// Traffic of captured steps: communicators do not count launches of the graph.
#include <gtest/gtest.h>

#include "train/recorded_traffic.hpp"

namespace triax::train {
namespace {

using Ran = executor::StepOutcome::Ran;

TEST(RecordedTraffic, CountsTheRecordedTrafficForEachLaunch) {
  RecordedTraffic traffic;
  const std::vector<CommStats> none(2), walked{{4, 40, 50}, {1, 10, 10}}, recorded{{9, 100, 120}, {3, 30, 30}};
  traffic.add(Ran::walked, none, walked);
  EXPECT_EQ(traffic.beyond(0).ops, 0u);
  traffic.add(Ran::recorded, walked, recorded);
  EXPECT_EQ(traffic.beyond(0).ops, 0u) << "the communicator counted that one";
  traffic.add(Ran::launched, recorded, recorded);
  traffic.add(Ran::launched, recorded, recorded);
  EXPECT_EQ(traffic.beyond(0).ops, 10u);
  EXPECT_EQ(traffic.beyond(0).bytes_out, 120u);
  EXPECT_EQ(traffic.beyond(0).bytes_in, 140u);
  EXPECT_EQ(traffic.beyond(1).ops, 4u);
  EXPECT_EQ(traffic.beyond(1).bytes_out, 40u);
  EXPECT_EQ(traffic.beyond(2).ops, 0u);
}

} // namespace
} // namespace triax::train
