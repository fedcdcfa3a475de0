// SPDX-License-Identifier: Apache-2.0
// The CUDA host emulator: it runs every thread once, in random order; it detects errors in kernels; it refuses what
// CUDA refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "host_kernels.hpp"
#include "support/error_of.hpp"
#include "support/host_cuda/launch.hpp"
#include "triax/error.hpp"

namespace triax::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using triax::test::error_of;

class HostMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    test::host_cuda::set_seed(1);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override { cudaStreamDestroy(stream_); }
  std::vector<int> neighbours(bool barrier) {
    std::vector<int> out(256, -1);
    EXPECT_EQ(launch_neighbours(out.data(), barrier, 1, 256, stream_), cudaSuccess);
    return out;
  }
  cudaStream_t stream_ = nullptr;
};

TEST_F(HostMachine, EveryThreadOfEveryBlockRunsOnce) {
  for (const auto& [grid, block] :
       {std::pair{dim3(1), dim3(1)}, {dim3(3, 2, 4), dim3(5, 3, 2)}, {dim3(70), dim3(256)}}) {
    std::vector<int> counts(std::size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z);
    EXPECT_EQ(launch_places(counts.data(), grid, block, stream_), cudaSuccess);
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; }));
  }
}

TEST_F(HostMachine, BlocksRunInAnOrderOfTheSeed) {
  const auto order = [&](std::uint32_t seed) {
    test::host_cuda::set_seed(seed);
    std::vector<int> numbers(50);
    int count = 0;
    EXPECT_EQ(launch_order(numbers.data(), &count, 50, stream_), cudaSuccess);
    return numbers;
  };
  std::vector<int> first = order(1);
  EXPECT_EQ(first, order(1));
  EXPECT_NE(first, order(2));
  std::sort(first.begin(), first.end());
  std::vector<int> all(50);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(first, all);
}

TEST_F(HostMachine, AMissingBarrierShows) {
  std::vector<int> expected(256);
  for (int i = 0; i < 256; ++i) expected[static_cast<std::size_t>(i)] = (i + 1) % 256;
  EXPECT_EQ(neighbours(true), expected);
  EXPECT_NE(neighbours(false), expected);
}

TEST_F(HostMachine, LanesAndThreadsSignalEachOther) {
  std::vector<unsigned> ballots(64);
  std::vector<double> sums(64);
  std::vector<int> votes(64);
  EXPECT_EQ(launch_together(ballots.data(), sums.data(), votes.data(), stream_), cudaSuccess);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(ballots[i], i < 32 ? 0xAAAAAAAAu : 0u);
    EXPECT_EQ(sums[i], i < 32 ? 496 : 496 + 32 * 32);
    EXPECT_EQ(votes[i], 1 + 4);
  }
}

TEST_F(HostMachine, ABarrierThatNotAllComeToIsAnError) {
  EXPECT_THAT(error_of([&] { launch_some_at_a_barrier(63, stream_); }),
              AllOf(HasSubstr("63 of 64 threads wait for others that do not come"), HasSubstr("63 at a barrier, "),
                    HasSubstr("host_kernels.cu:")));
  EXPECT_EQ(launch_some_at_a_barrier(64, stream_), cudaSuccess) << "the next one runs";
  EXPECT_EQ(launch_some_at_a_barrier(0, stream_), cudaSuccess);
  EXPECT_THAT(error_of([&] { launch_two_barriers(stream_); }), HasSubstr(" is at a barrier, host_kernels.cu:"));
}

TEST_F(HostMachine, AShuffleWithLanesMissingIsAnError) {
  EXPECT_THAT(error_of([&] { launch_some_in_a_shuffle(31, stream_); }),
              AllOf(HasSubstr("62 of 64 threads"), HasSubstr("31 of warp 1 at a shuffle")));
  EXPECT_EQ(launch_some_in_a_shuffle(32, stream_), cudaSuccess);
}

TEST_F(HostMachine, SharedMemoryBeginsAsNanInEachBlock) {
  std::vector<float> found(5);
  EXPECT_EQ(launch_unwritten(found.data(), 5, stream_), cudaSuccess);
  for (const float value : found) EXPECT_TRUE(std::isnan(value));
}

TEST_F(HostMachine, LaunchesThatCudaRefusesAreRefused) {
  std::vector<int> counts(1);
  for (const auto& [grid, block] : {std::pair{dim3(0), dim3(1)},
                                    {dim3(1), dim3(0)},
                                    {dim3(1), dim3(1025)},
                                    {dim3(1, 65536), dim3(1)},
                                    {dim3(1), dim3(32, 33)},
                                    {dim3(0x80000000u), dim3(1)}}) {
    EXPECT_EQ(launch_places(counts.data(), grid, block, stream_), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  EXPECT_EQ(counts[0], 0);
}

TEST_F(HostMachine, WhatIsCapturedRunsWhenItIsLaunched) {
  std::vector<int> counts(4);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(launch_places(counts.data(), 2, 2, stream_), cudaSuccess);
  EXPECT_EQ(counts[0], 0);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  cudaGraphExecDestroy(executable);
  EXPECT_EQ(counts, std::vector<int>(4, 3));
}

} // namespace
} // namespace triax::cuda
