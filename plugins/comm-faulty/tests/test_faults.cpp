// SPDX-License-Identifier: Apache-2.0
// What each fault does to calls over comm-local. That delays and reordering keep the contract is proved by the
// conformance suite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/error_of.hpp"
#include "support/ranks.hpp"

namespace triax::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Communication faulty(const std::string& fault, const std::vector<std::pair<std::string, OptionValue>>& options = {}) {
  Communication out{"comm-faulty", {}};
  out.options.set("inner", std::string("comm-local"));
  out.options.set("fault", fault);
  for (const auto& [name, value] : options) out.options.set(name, value);
  return out;
}

std::int64_t whole(int value) {
  return value;
}

Transfer receive(const TensorView& view, int peer) {
  return {Direction::receive, peer, 0, view};
}
Transfer send(const TensorView& view, int peer) {
  return {Direction::send, peer, 0, view};
}

TEST(Faults, ADroppedCallIsPendingUntilTheGroupIsAborted) {
  run_ranks(
      2,
      [](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        const TensorView view = rank.tensor(DType::f32, {3});
        rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
        const Work dropped = comm.all_reduce(view, view, Reduce::sum, rank.stream(), 41);
        rank.progress(1000);
        EXPECT_FALSE(dropped.event.fired());
        EXPECT_STREQ(comm.pending().name, "all_reduce");
        EXPECT_EQ(comm.pending().action, 41u);
        rank.barrier("dropped");
        if (rank.index() == 1) comm.abort("enough");
        EXPECT_THAT(error_of([&] { rank.wait(dropped); }), HasSubstr("rank 1 aborted group tensor.0: enough"));
        rank.finish(); // the stream is free again
      },
      faulty("drop", {{"rank", whole(0)}, {"at", whole(2)}}));
}

/// What rank 1 receives of a hundred zeros.
std::vector<std::uint32_t> corrupted(int seed) {
  std::vector<std::uint32_t> out;
  run_ranks(
      2,
      [&out](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        const TensorView view = rank.tensor(DType::i32, {100});
        for (int turn = 0; turn < 3; ++turn) {
          const Transfer transfer = rank.index() == 0 ? send(view, 1) : receive(view, 0);
          rank.wait(comm.exchange(std::vector{transfer}, rank.stream()));
          if (rank.index() == 0) continue;
          const auto received = rank.values<std::uint32_t>(view);
          if (turn == 1)
            out = received;
          else
            EXPECT_EQ(received, std::vector<std::uint32_t>(100, 0)) << turn;
        }
      },
      faulty("corrupt", {{"at", whole(2)}, {"seed", whole(seed)}}));
  return out;
}

TEST(Faults, ACorruptedCallReceivesOneOtherBit) {
  const std::vector<std::uint32_t> received = corrupted(1);
  int bits = 0;
  for (const std::uint32_t value : received) bits += std::popcount(value);
  EXPECT_EQ(bits, 1);
  EXPECT_EQ(corrupted(1), received);
  EXPECT_NE(corrupted(2), received);
}

TEST(Faults, ACorruptedCallFailsWithTheGroup) {
  run_ranks(
      2,
      [](Rank& rank) {
        Communicator& comm = rank.join("tensor");
        const TensorView view = rank.tensor(DType::f32, {3});
        if (rank.index() == 0) {
          const Work lonely = comm.all_reduce(view, view, Reduce::sum, rank.stream());
          rank.barrier("posted");
          EXPECT_THAT(error_of([&] { rank.wait(lonely); }), HasSubstr("rank 1 aborted group tensor.0: enough"));
          return;
        }
        rank.barrier("posted");
        comm.abort("enough");
      },
      faulty("corrupt"));
}

TEST(Faults, AFailedPostNamesTheCallAndTheGroup) {
  const std::string error = error_of([] {
    run_ranks(
        2,
        [](Rank& rank) {
          Communicator& comm = rank.join("tensor");
          const TensorView view = rank.tensor(DType::f32, {3});
          for (int turn = 0; turn < 3; ++turn) rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
        },
        faulty("fail", {{"rank", whole(1)}, {"at", whole(2)}}));
  });
  EXPECT_THAT(error,
              AllOf(HasSubstr("group tensor.0"), HasSubstr("all_reduce is post 2"), HasSubstr("set fault = \"none\"")));
}

/// The communicator is destroyed while a call is held back, and its stream later.
TEST(Faults, AHeldCallMayOutliveItsCommunicator) {
  run_ranks(
      2,
      [](Rank& rank) {
        const auto stream = rank.device().make_stream("late");
        Options options = faulty("drop").options;
        const auto make = loaded_communicator("comm-faulty", options);
        const auto backend = make({options, null_log(), rank.layout(), rank.index(), 1});
        backend->start(rank.device());
        auto comm = backend->join(rank.layout().group(rank.index(), "tensor"), rank.store(), rank.deadline());
        const TensorView view = rank.tensor(DType::f32, {3});
        comm->all_reduce(view, view, Reduce::sum, *stream);
        rank.progress(10);
        rank.barrier("held");
        comm.reset();
        rank.progress(10);
        rank.device().wait(stream->record(), rank.deadline());
      },
      Communication{});
}

TEST(Faults, ARunThatAFaultWouldMissIsRefused) {
  const Layout layout = Layout::ptd(1, 2, 1);
  const auto refusals = [&](const std::string& fault, const std::vector<std::pair<std::string, OptionValue>>& set,
                            DeviceKind device = DeviceKind::host, const char* served = "tensor") {
    Options options = faulty(fault, set).options;
    const auto backend = loaded_communicator("comm-faulty", options)({options, null_log(), layout, 0, 1});
    std::string out;
    for (const Refusal& refusal : backend->supports({device, {served}, true, true})) out += refusal.message + "\n";
    return out;
  };
  EXPECT_EQ(refusals("drop", {{"rank", whole(1)}, {"axis", std::string("tensor")}}), "");
  EXPECT_EQ(refusals("drop", {{"rank", whole(2)}}), "rank = 2: the run has 2 ranks, counted from 0\n");
  EXPECT_EQ(refusals("drop", {{"axis", std::string("tensr")}}),
            "axis = \"tensr\" is not an axis that it serves in this run\n");
  const auto in_data = [&](const char* axis) {
    return refusals("drop", {{"axis", std::string(axis)}}, DeviceKind::host, "data");
  };
  EXPECT_EQ(in_data("tensor*data"), "") << "in the order of the layout, and joined by the last axis";
  for (const char* missed : {"data*tensor", "data*pipeline"})
    EXPECT_EQ(in_data(missed), text("axis = \"{}\" is not an axis that it serves in this run\n", missed));
  for (const char* missed : {"tensr*tensor", "data*tensr", "data", "tensor*", "tensor*pipeline"})
    EXPECT_EQ(refusals("drop", {{"axis", std::string(missed)}}),
              text("axis = \"{}\" is not an axis that it serves in this run\n", missed));
  EXPECT_EQ(refusals("refuse", {}), "fault = \"refuse\" refuses every run\n");
  EXPECT_THAT(refusals("corrupt", {}, DeviceKind::cuda),
              AllOf(HasSubstr("fault = \"corrupt\" changes host memory; the device is CUDA\n"),
                    HasSubstr("comm-local moves host memory"))); // those of the wrapped backend, too
}

} // namespace
} // namespace triax::test
