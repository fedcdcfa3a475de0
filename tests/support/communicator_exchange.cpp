// SPDX-License-Identifier: Apache-2.0
// Sends and receives: matching by edge and order, unordered sets, bytes.
#include <gmock/gmock.h>

#include <vector>

#include "support/communicator_suite.hpp"
#include "support/transfers.hpp"

namespace {

using namespace triax;
using triax::test::guarantees;
using triax::test::number;
using triax::test::Rank;
using triax::test::receive;
using triax::test::run_members;
using triax::test::send;

int value_of(Rank& rank, const TensorView& view) {
  return rank.values<std::int32_t>(view).front();
}

TEST(Exchange, RingInOneSetDoesNotDeadlock) {
  for (const int n : {2, 3, 5}) {
    run_members(n, [&](Rank& rank) {
      Communicator& comm = rank.join("tensor");
      const int next = (rank.index() + 1) % n, before = (rank.index() + n - 1) % n;
      const TensorView out = number(rank, rank.index()), in = number(rank, -1);
      const Transfer set[] = {send(next, out), receive(before, in)};
      rank.wait(comm.exchange(set, rank.stream()));
      EXPECT_EQ(value_of(rank, in), before);
      EXPECT_EQ(comm.stats().ops, 1u);
      EXPECT_EQ(comm.stats().bytes_out, 4u);
      EXPECT_EQ(comm.stats().bytes_in, 4u);
    });
  }
}

TEST(Exchange, TheKthSendMeetsTheKthReceive) {
  constexpr int kCount = 50; // more than an edge keeps in flight
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    std::vector<TensorView> views;
    std::vector<Work> works;
    for (int i = 0; i < kCount; ++i) views.push_back(number(rank, rank.index() == 0 ? i : -1));
    for (int i = 0; i < kCount; ++i) {
      const TensorView& view = views[static_cast<std::size_t>(i)];
      const Transfer one = rank.index() == 0 ? send(1, view) : receive(0, view);
      works.push_back(comm.exchange({&one, 1}, rank.stream()));
    }
    for (const Work& work : works) rank.wait(work);
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(value_of(rank, views[static_cast<std::size_t>(i)]), i);
  });
}

TEST(Exchange, OrderIsThatOfThePostsAcrossStreams) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const std::unique_ptr<Stream> early = rank.device().make_stream("early");
    HostEvent gate;
    early->wait(gate.arm()); // posted first, runs last
    const TensorView a = number(rank, rank.index() == 0 ? 1 : -1), b = number(rank, rank.index() == 0 ? 2 : -1);
    const Transfer first = rank.index() == 0 ? send(1, a) : receive(0, a);
    const Transfer second = rank.index() == 0 ? send(1, b) : receive(0, b);
    const Work work_a = comm.exchange({&first, 1}, *early);
    const Work work_b = comm.exchange({&second, 1}, rank.stream());
    for (int i = 0; i < 20; ++i) rank.device().progress();
    gate.fire();
    rank.wait(work_a);
    rank.wait(work_b);
    EXPECT_EQ(value_of(rank, a), 1);
    EXPECT_EQ(value_of(rank, b), 2);
  });
}

TEST(Exchange, ChannelsAreIndependent) {
  if (!guarantees().channels) GTEST_SKIP() << "the backend declares one order for transfers of all channels";
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const bool sender = rank.index() == 0;
    const TensorView a = number(rank, sender ? 10 : -1), b = number(rank, sender ? 20 : -1);
    // The receiver posts channel 7 first; the sender posted channel 3 first.
    const std::unique_ptr<Stream> other = rank.device().make_stream("other");
    const Transfer on3 = sender ? send(1, a, 3) : receive(0, a, 3), on7 = sender ? send(1, b, 7) : receive(0, b, 7);
    if (sender) {
      const Work work_a = comm.exchange({&on3, 1}, rank.stream());
      const Work work_b = comm.exchange({&on7, 1}, *other);
      rank.wait(work_b);
      rank.wait(work_a);
    } else {
      rank.wait(comm.exchange({&on7, 1}, rank.stream()));
      rank.wait(comm.exchange({&on3, 1}, rank.stream()));
      EXPECT_EQ(value_of(rank, a), 10);
      EXPECT_EQ(value_of(rank, b), 20);
    }
  });
}

TEST(Exchange, AnEmptySetCompletes) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    rank.wait(comm.exchange({}, rank.stream()));
    EXPECT_EQ(comm.stats().ops, 1u);
  });
}

TEST(Exchange, MovesEmptyViewsAndEveryType) {
  run_members(2, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
      for (const std::int64_t elements : {0, 1, 1000}) {
        const TensorView out = rank.tensor(dtype, {elements}), in = rank.tensor(dtype, {elements});
        rank.device().fill(out, rank.index() + 1, rank.stream());
        rank.finish();
        const Transfer set[] = {receive(1 - rank.index(), in), send(1 - rank.index(), out)};
        rank.wait(comm.exchange(set, rank.stream()));
        rank.device().fill(out, 2 - rank.index(), rank.stream());
        EXPECT_EQ(rank.bytes(in), rank.bytes(out)) << name_of(dtype) << " " << elements;
      }
    }
  });
}

/// Exchanges and collectives of one group alternate, as in the steps of a pipeline.
TEST(Exchange, GoesBesideCollectives) {
  run_members(3, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView sum = number(rank, 0), out = number(rank, 0), in = number(rank, 0);
    for (int step = 0; step < 200; ++step) {
      rank.device().fill(out, 100 * step + rank.index(), rank.stream());
      rank.device().fill(sum, step, rank.stream());
      const Transfer set[] = {send((rank.index() + 1) % 3, out), receive((rank.index() + 2) % 3, in)};
      const Work exchanged = comm.exchange(set, rank.stream());
      rank.wait(comm.all_reduce(sum, sum, Reduce::sum, rank.stream()));
      EXPECT_TRUE(exchanged.event.fired()) << "a stream is a queue";
      EXPECT_EQ(value_of(rank, sum), 3 * step);
      EXPECT_EQ(value_of(rank, in), 100 * step + (rank.index() + 2) % 3);
    }
  });
}

} // namespace
