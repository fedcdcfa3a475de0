// SPDX-License-Identifier: Apache-2.0
// Communicators of edges, and connections before the first step.
#include <gmock/gmock.h>

#include <set>
#include <vector>

#include "edges.hpp"
#include "members.hpp"
#include "support/error_of.hpp"
#include "support/transfers.hpp"

namespace triax::test {
namespace {

using ::testing::HasSubstr;
using triax::test::error_of;
using triax::test::number;
using triax::test::Rank;

TEST(Edges, EachIsInOneRoundAndAMemberInOneEdgeOfARound) {
  for (int members = 1; members <= 9; ++members) {
    std::set<std::pair<int, int>> all;
    for (const auto& round : triax::comm_nccl::rounds_of_edges(members)) {
      std::set<int> busy;
      EXPECT_FALSE(round.empty());
      for (const triax::comm_nccl::Edge& edge : round) {
        EXPECT_TRUE(all.insert({edge.from, edge.to}).second) << members;
        EXPECT_TRUE(busy.insert(edge.from).second) << members;
        EXPECT_TRUE(busy.insert(edge.to).second) << members;
      }
    }
    EXPECT_EQ(all.size(), members == 1 ? 0u : members == 2 ? 2u : 2u * static_cast<std::size_t>(members));
    for (int member = 0; member < members; ++member)
      for (const int next : triax::comm_nccl::neighbours(members, member)) EXPECT_TRUE(all.contains({member, next}));
  }
}

/// One stream per edge, as the executor has them. A receive whose send is not yet posted does not delay a
/// later send, as it would on one communicator.
TEST(Edges, DoNotWaitForEachOther) {
  for (const int ranks : {2, 3, 4}) {
    FakeNcclOptions options;
    options.edge_communicators = true;
    options.rules.one_kernel_a_gpu = false;
    run_members(Layout::ptd(ranks, 1, 1), options, [ranks](Rank& rank) {
      Communicator& comm = rank.join("pipeline");
      const int next = (rank.index() + 1) % ranks, before = (rank.index() + ranks - 1) % ranks;
      const std::unique_ptr<Stream> in = rank.device().make_stream("in"), out = rank.device().make_stream("out");
      const TensorView got = number(rank, -1), given_on = number(rank, rank.index());
      const Transfer receive{Direction::receive, before, 0, got}, send{Direction::send, next, 0, given_on};
      const Work received = comm.exchange({&receive, 1}, *in);
      rank.wait(comm.exchange({&send, 1}, *out));
      rank.wait(received);
      EXPECT_EQ(rank.values<std::int32_t>(got).front(), before);
    });
    EXPECT_EQ(counts().splits, ranks == 2 ? 4 : 4 * ranks);
  }
}

/// Without edge communicators, the fake finds the deadlock of this order: all receives first.
TEST(Edges, WithoutThemTheSameOrderWouldHang) {
  run_members(Layout::ptd(2, 1, 1), {.expects_violations = true}, [](Rank& rank) {
    Communicator& comm = rank.join("pipeline");
    const int peer = 1 - rank.index();
    const std::unique_ptr<Stream> in = rank.device().make_stream("in"), out = rank.device().make_stream("out");
    const TensorView got = number(rank, -1), given_on = number(rank, rank.index());
    const Transfer receive{Direction::receive, peer, 0, got}, send{Direction::send, peer, 0, given_on};
    EXPECT_THAT(error_of([&] {
                  const Work received = comm.exchange({&receive, 1}, *in);
                  rank.wait(comm.exchange({&send, 1}, *out));
                  rank.wait(received);
                }),
                HasSubstr("would hang"));
  });
  EXPECT_THAT(violations(), ::testing::Contains(HasSubstr("would hang")));
}

/// Several tensors of one boundary, and sets along several edges, which use the group's communicator.
TEST(Edges, CarryBoundariesOfSeveralTensors) {
  FakeNcclOptions options;
  options.edge_communicators = true;
  run_members(Layout::ptd(2, 1, 1), options, [](Rank& rank) {
    Communicator& comm = rank.join("pipeline");
    const int peer = 1 - rank.index();
    const TensorView a = number(rank, 10 + rank.index()), b = number(rank, 20 + rank.index());
    const Direction way = rank.index() == 0 ? Direction::send : Direction::receive;
    const Transfer boundary[] = {{way, peer, 0, a}, {way, peer, 0, b}};
    rank.wait(comm.exchange(boundary, rank.stream()));
    EXPECT_EQ(rank.values<std::int32_t>(a).front(), 10);
    EXPECT_EQ(rank.values<std::int32_t>(b).front(), 20);
    const TensorView out = number(rank, rank.index()), in = number(rank, -1);
    const Transfer both[] = {{Direction::send, peer, 0, out}, {Direction::receive, peer, 0, in}};
    rank.wait(comm.exchange(both, rank.stream()));
    EXPECT_EQ(rank.values<std::int32_t>(in).front(), peer);
  });
}

TEST(Connections, OfNeighboursAreMadeWhenTheGroupIsJoined) {
  for (const bool edges : {false, true}) {
    FakeNcclOptions options;
    options.edge_communicators = edges;
    run_members(Layout::ptd(3, 1, 1), options, [](Rank& rank) {
      Communicator& comm = rank.join("pipeline");
      rank.store().add("joined", 1);
      while (rank.store().add("joined", 0) < 3) std::this_thread::yield();
      const int before = counts().late_connections;
      comm.barrier(Rank::deadline());
      const TensorView out = number(rank, rank.index()), in = number(rank, -1);
      const Transfer set[] = {{Direction::send, (rank.index() + 1) % 3, 0, out},
                              {Direction::receive, (rank.index() + 2) % 3, 0, in}};
      rank.wait(comm.exchange(set, rank.stream()));
      comm.barrier(Rank::deadline());
      EXPECT_EQ(counts().late_connections, before);
    });
  }
}

/// Ranks that are not neighbours connect at their first transfer.
TEST(Connections, OfOthersWaitForBoth) {
  run_members(4, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const int peer = (rank.index() + 2) % 4;
    const TensorView out = number(rank, rank.index()), in = number(rank, -1);
    const Transfer set[] = {{Direction::send, peer, 0, out}, {Direction::receive, peer, 0, in}};
    rank.wait(comm.exchange(set, rank.stream()));
    EXPECT_EQ(rank.values<std::int32_t>(in).front(), peer);
  });
}

TEST(Channels, AreRefused) {
  run_members(2, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const Transfer one{Direction::send, 1 - rank.index(), 3, number(rank, 1)};
    EXPECT_THAT(error_of([&] {
                  comm.exchange({&one, 1}, rank.stream());
                }),
                HasSubstr("channel 3: NCCL has no channels"));
  });
}

} // namespace
} // namespace triax::test
