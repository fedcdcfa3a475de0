// SPDX-License-Identifier: Apache-2.0
// Joining through the store, and what the backend supports.
#include <gmock/gmock.h>

#include <string>

#include "support/error_of.hpp"
#include "support/ranks.hpp"

namespace {

using namespace triax;
using ::testing::AllOf;
using ::testing::HasSubstr;
using triax::test::error_of;
using triax::test::Rank;
using triax::test::run_ranks;

TEST(Backend, DeclaresItsGuarantees) {
  run_ranks(1, [](Rank& rank) {
    const CommTraits traits = rank.backend().traits();
    EXPECT_EQ(traits.order, CommTraits::Order::tagged);
    EXPECT_EQ(traits.send, CommTraits::Send::rendezvous);
    EXPECT_EQ(traits.post, CommTraits::Post::nonblocking);
    EXPECT_EQ(traits.reduction, CommTraits::Reduction::rank_order);
    EXPECT_EQ(traits.ranks, CommTraits::Ranks::same_process);
  });
}

TEST(Backend, RefusesProcessesAndOtherDevices) {
  run_ranks(1, [](Rank& rank) {
    CommRequest request{DeviceKind::host, {"tensor"}, true};
    EXPECT_TRUE(rank.backend().supports(request).empty());
    request.ranks_are_threads = false;
    EXPECT_THAT(rank.backend().supports(request).front().message,
                HasSubstr("comm-local joins ranks that are threads of one process"));
    request.axes.clear(); // a run of one rank joins no group
    EXPECT_TRUE(rank.backend().supports(request).empty());
    request.device = DeviceKind::cuda;
    EXPECT_THAT(rank.backend().supports(request).front().message, HasSubstr("the kernel set's device is CUDA"));
    request.axes = {"tensor"};
    EXPECT_EQ(rank.backend().supports(request).size(), 2u) << "one reason must not hide the other";
  });
}

TEST(Join, AGroupCanBeJoinedAgainAndByTwoJobsOfTheProcess) {
  const auto sum_twice = [](Rank& rank) {
    for (int round = 0; round < 2; ++round) {
      Communicator& comm = rank.join("tensor");
      const TensorView view = rank.tensor<std::int32_t>(DType::i32, {1}, {1 + rank.index()});
      rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
      EXPECT_EQ(*view.as<std::int32_t>(), 6);
    }
  };
  std::thread other([&] { run_ranks(3, sum_twice); });
  run_ranks(3, sum_twice);
  other.join();
}

TEST(Join, TimesOutAndNamesTheMissingRanks) {
  run_ranks(4, [](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 0) {
      EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), deadline_in(0.05)); }),
                  HasSubstr("group tensor.0: timed out waiting for rank 1, 2, 3"));
      rank.store().set("left", "");
    } else {
      rank.store().get("left", Rank::deadline());
      EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), deadline_in(0.05)); }),
                  HasSubstr("group tensor.0: the other ranks failed: rank 0 could not join"));
    }
  });
}

TEST(Join, TheFirstRankMissingIsNamed) {
  run_ranks(2, [](Rank& rank) {
    if (rank.index() == 0) return;
    const Group group = rank.layout().group(1, "tensor");
    EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), deadline_in(0.02)); }),
                HasSubstr("group tensor.0: timed out waiting for rank 0"));
  });
}

TEST(Join, RanksOfOneGroupMustAgreeOnItsMembers) {
  run_ranks(2, [](Rank& rank) {
    Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 1) group.ranks = {5, 1};
    EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); }),
                HasSubstr("the group has ranks"));
  });
}

TEST(Join, RefusesRanksOfAnotherProcess) {
  run_ranks(2, [](Rank& rank) {
    const Group group = rank.layout().group(rank.index(), "tensor");
    if (rank.index() == 0) {
      rank.store().set("comm-local/tensor.0/1/entry 0", "comm-local 1\n0, 1\n999999\n1234\n1"); // another process
      rank.store().set("written", "");
      return;
    }
    rank.store().get("written", Rank::deadline());
    EXPECT_THAT(error_of([&] { rank.backend().join(group, rank.store(), Rank::deadline()); }),
                AllOf(HasSubstr("comm-local joins ranks that are threads of one process; rank 0 is in process 999999"),
                      HasSubstr("rank 1 in process")));
  });
}

} // namespace
