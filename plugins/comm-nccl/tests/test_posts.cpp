// SPDX-License-Identifier: Apache-2.0
// Posts in the steady state: which NCCL calls they make, and that they do not allocate.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>

#include "backend.hpp"
#include "members.hpp"
#include "support/count_allocations.hpp"

namespace triax::test {
namespace {

using triax::test::allocations;
using triax::test::Rank;

/// When set, calls return at once and move nothing, so that only the plugin's own allocations count.
std::atomic<bool> quiet{false};
std::atomic<int> asked{0};

triax::comm_nccl::NcclApi answering() {
  triax::comm_nccl::NcclApi api = fake_nccl();
  static constexpr auto kCalled = [] {
    ++asked;
    return ncclSuccess;
  };
  api.all_reduce = [](const void* in, void* out, std::size_t n, ncclDataType_t t, ncclRedOp_t r, ncclComm_t c,
                      cudaStream_t s) { return quiet ? kCalled() : fake_nccl().all_reduce(in, out, n, t, r, c, s); };
  api.reduce_scatter = [](const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t) {
    return kCalled();
  };
  api.all_gather = [](const void*, void*, std::size_t, ncclDataType_t, ncclComm_t, cudaStream_t) { return kCalled(); };
  api.broadcast = [](const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
    return kCalled();
  };
  api.send = [](const void* d, std::size_t n, ncclDataType_t t, int p, ncclComm_t c, cudaStream_t s) {
    return quiet ? kCalled() : fake_nccl().send(d, n, t, p, c, s);
  };
  api.recv = [](void* d, std::size_t n, ncclDataType_t t, int p, ncclComm_t c, cudaStream_t s) {
    return quiet ? kCalled() : fake_nccl().recv(d, n, t, p, c, s);
  };
  api.group_start = [] { return quiet ? ncclSuccess : fake_nccl().group_start(); };
  api.group_end = [] { return quiet ? ncclSuccess : fake_nccl().group_end(); };
  api.record_event = [](void* event, cudaStream_t stream) {
    if (!quiet) fake_nccl().record_event(event, stream);
  };
  return api;
}

TEST(Posts, AllocateNothing) {
  static const triax::comm_nccl::NcclApi kApi = answering();
  for (const bool edges : {false, true}) {
    quiet = false;
    asked = 0;
    triax::test::Communication given = communication({.edge_communicators = edges});
    given.backend = [](const PluginContext& context) {
      return std::make_unique<triax::comm_nccl::NcclBackend>(context, kApi);
    };
    triax::test::run_ranks(
        Layout::ptd(2, 1, 1),
        [](Rank& rank) {
          Communicator& comm = rank.join("pipeline");
          const TensorView large = rank.tensor(DType::f32, {8}), small = rank.tensor(DType::f32, {4});
          const TensorView other = rank.tensor(DType::f32, {8});
          const int peer = 1 - rank.index();
          const Transfer one[] = {{Direction::send, peer, 0, large}};
          const Transfer both[] = {{Direction::send, peer, 0, large}, {Direction::receive, peer, 0, other}};
          comm.barrier(Rank::deadline());
          if (rank.index() == 0) quiet = true;
          comm.barrier(Rank::deadline());
          Stream& stream = rank.stream();
          const auto step = [&] {
            comm.all_reduce(large, large, Reduce::sum, stream);
            comm.reduce_scatter(large, small, Reduce::max, stream);
            comm.all_gather(small, large, stream);
            comm.all_to_all(large, other, stream);
            comm.broadcast(large, 0, stream);
            comm.exchange(one, stream);
            comm.exchange(both, stream);
          };
          for (int i = 0; i < 5; ++i) step();
          const std::size_t before = allocations();
          for (int i = 0; i < 20; ++i) step();
          EXPECT_EQ(allocations(), before);
          comm.barrier(Rank::deadline());
        },
        given);
    EXPECT_EQ(asked, 2 * 25 * (4 + 4 + 1 + 2)) << "an all_to_all of two is two sends and two receives";
    quiet = false;
  }
}

/// NCCL keeps the order of one communicator's calls across streams; the caller's streams keep their own order.
TEST(Posts, AreStreamOrdered) {
  run_members(2, {}, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor<std::int32_t>(DType::i32, {1}, {1});
    for (int i = 0; i < 10; ++i) { // no host wait in between
      comm.all_reduce(view, view, Reduce::sum, rank.stream());
      rank.device().fill(view, i, rank.stream());
    }
    rank.wait(comm.all_reduce(view, view, Reduce::max, rank.stream()));
    EXPECT_EQ(rank.values<std::int32_t>(view).front(), 9);
  });
}

} // namespace
} // namespace triax::test
