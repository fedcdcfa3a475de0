// SPDX-License-Identifier: Apache-2.0
// Joining through the store and UCX, and what the backend supports.
#include <gmock/gmock.h>

#include <string>

#include "support/communicator_suite.hpp"
#include "support/error_of.hpp"

namespace {

using namespace triax;
using ::testing::HasSubstr;
using triax::test::error_of;
using triax::test::Rank;
using triax::test::run_members;

TEST(Backend, DeclaresItsGuarantees) {
  run_members(1, [](Rank& rank) {
    const CommTraits traits = rank.backend().traits();
    EXPECT_EQ(traits.order, CommTraits::Order::tagged);
    EXPECT_EQ(traits.send, CommTraits::Send::rendezvous);
    EXPECT_EQ(traits.post, CommTraits::Post::nonblocking);
    EXPECT_EQ(traits.reduction, CommTraits::Reduction::rank_order);
    EXPECT_EQ(traits.ranks, CommTraits::Ranks::many_per_process);
  });
}

TEST(Backend, ServesThreadsAndProcessesOfHostAndCudaDevices) {
  run_members(1, [](Rank& rank) {
    CommRequest request{DeviceKind::host, {"tensor"}, true};
    EXPECT_TRUE(rank.backend().supports(request).empty());
    request.ranks_are_threads = false;
    EXPECT_TRUE(rank.backend().supports(request).empty());
    request.device = DeviceKind::cuda;
    EXPECT_TRUE(rank.backend().supports(request).empty());
    request.device = DeviceKind::sim;
    EXPECT_THAT(rank.backend().supports(request).front().message, HasSubstr("the kernel set's device is sim"));
  });
}

TEST(Join, TimesOutAndNamesTheMissingRanks) {
  run_members(4, [](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 0) {
      EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), deadline_in(0.05)); }),
                  HasSubstr("group tensor.0: timed out waiting for rank 1, 2, 3"));
      rank.store().set("left", "");
    } else {
      rank.store().get("left", Rank::deadline());
      EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); }),
                  HasSubstr("the other ranks failed: rank 0 could not join"));
    }
  });
}

TEST(Join, RanksOfOneGroupMustAgreeOnItsMembers) {
  run_members(2, [](Rank& rank) {
    Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 1) group.ranks = {5, 1};
    EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); }),
                HasSubstr("the group has ranks"));
  });
}

} // namespace
