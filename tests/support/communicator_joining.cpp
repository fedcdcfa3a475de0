// SPDX-License-Identifier: Apache-2.0
// Joining through the store.
#include <gmock/gmock.h>

#include "support/communicator_suite.hpp"

namespace {

using namespace triax;
using triax::test::Rank;
using triax::test::run_members;

TEST(Join, AGroupMayBeJoinedAgain) {
  run_members(3, [](Rank& rank) {
    for (int round = 0; round < 3; ++round) {
      Communicator& comm = rank.join("tensor");
      const TensorView view = rank.tensor<std::int32_t>(DType::i32, {1}, {round});
      rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
      EXPECT_EQ(rank.values<std::int32_t>(view).front(), 3 * round);
      EXPECT_EQ(comm.size(), 3);
      EXPECT_EQ(comm.index(), rank.index());
    }
  });
}

} // namespace
