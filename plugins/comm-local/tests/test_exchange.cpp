// SPDX-License-Identifier: Apache-2.0
// Properties of sends and receives that only comm-local has: no buffering, and edges are queues.
#include <gmock/gmock.h>

#include "support/ranks.hpp"
#include "support/transfers.hpp"

namespace {

using namespace triax;
using triax::test::number;
using triax::test::Rank;
using triax::test::receive;
using triax::test::run_ranks;
using triax::test::send;

int value_of(const TensorView& view) {
  return view.as<std::int32_t>()[0];
}

TEST(Exchange, ALaterTransferWaitsForTheOneBeforeOnItsEdge) {
  run_ranks(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const std::unique_ptr<Stream> early = rank.device().make_stream("early");
    HostEvent blocker;
    early->wait(blocker.arm()); // posted first, runs last
    const TensorView a = number(rank, rank.index() == 0 ? 1 : -1), b = number(rank, rank.index() == 0 ? 2 : -1);
    const Transfer first = rank.index() == 0 ? send(1, a) : receive(0, a);
    const Transfer second = rank.index() == 0 ? send(1, b) : receive(0, b);
    const Work work_a = comm.exchange({&first, 1}, *early);
    const Work work_b = comm.exchange({&second, 1}, rank.stream());
    for (int i = 0; i < 20; ++i) rank.device().progress();
    EXPECT_FALSE(work_b.event.fired());
    blocker.fire();
    rank.wait(work_a);
    rank.wait(work_b);
    EXPECT_EQ(value_of(a), 1);
    EXPECT_EQ(value_of(b), 2);
  });
}

TEST(Exchange, ASendIsCompleteOnlyWithItsReceive) {
  run_ranks(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = number(rank, rank.index());
    if (rank.index() == 0) {
      const Transfer out = send(1, view);
      const Work work = comm.exchange({&out, 1}, rank.stream());
      for (int i = 0; i < 50; ++i) rank.device().progress();
      EXPECT_FALSE(work.event.fired());
      comm.barrier(Rank::deadline());
      rank.wait(work);
    } else {
      comm.barrier(Rank::deadline());
      const Transfer in = receive(0, view);
      rank.wait(comm.exchange({&in, 1}, rank.stream()));
      EXPECT_EQ(value_of(view), 0);
    }
  });
}

} // namespace
