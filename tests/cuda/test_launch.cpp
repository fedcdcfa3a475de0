// SPDX-License-Identifier: Apache-2.0
// Grids and the elements of each thread: every element is processed once, at odd sizes and above 2^31.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "primitives/rope_parts.hpp"
#include "triax/cuda/launch.hpp"
#include "triax/cuda/launch_blocking.hpp"

namespace triax::cuda {
namespace {

constexpr std::int64_t kPast32Bits = (std::int64_t{1} << 33) + 7;

TEST(Launch, EveryElementIsTakenOnce) {
  const std::int64_t wide = std::int64_t{kMaxBlocks} * kBlockSize;
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{255}, std::int64_t{256}, std::int64_t{257},
                                   std::int64_t{10007}, wide - 1, wide, wide + 1, 2 * wide + 3}) {
    const Grid grid = grid_of_elements(count);
    ASSERT_GE(grid.blocks, 1u);
    ASSERT_LE(grid.blocks, kMaxBlocks);
    std::vector<bool> taken(static_cast<std::size_t>(count));
    std::int64_t times = 0;
    for (unsigned block = 0; block < grid.blocks; ++block) {
      for (unsigned thread = 0; thread < grid.threads; ++thread) {
        const GridStride stride = stride_of_thread(block, thread, grid.blocks, grid.threads);
        for (std::int64_t i = stride.first; i < count; i += stride.step, ++times)
          taken[static_cast<std::size_t>(i)] = true;
      }
    }
    EXPECT_EQ(times, count);
    EXPECT_EQ(std::count(taken.begin(), taken.end(), true), count);
  }
}

/// Threads start at consecutive elements and advance by the whole grid, so the first and last start and their steps
/// suffice.
TEST(Launch, PastTwoToTheThirtyOneNothingWrapsAround) {
  const Grid grid = grid_of_elements(kPast32Bits);
  EXPECT_EQ(grid.blocks, kMaxBlocks);
  const GridStride first = stride_of_thread(0, 0, grid.blocks, grid.threads);
  const GridStride last = stride_of_thread(grid.blocks - 1, grid.threads - 1, grid.blocks, grid.threads);
  EXPECT_EQ(first.first, 0);
  EXPECT_EQ(last.first, first.step - 1);
  EXPECT_EQ(first.step, std::int64_t{kMaxBlocks} * kBlockSize);
  // Also with CUDA's largest grid.
  const GridStride huge = stride_of_thread(2147483646u, 1023u, 2147483647u, 1024u);
  EXPECT_EQ(huge.first, std::int64_t{2147483647} * 1024 - 1);
  EXPECT_EQ(huge.step, std::int64_t{2147483647} * 1024);
}

TEST(Launch, ABlockForEachRowAsFarAsTheyGo) {
  EXPECT_EQ(grid_of_blocks(1).blocks, 1u);
  EXPECT_EQ(grid_of_blocks(4097).blocks, 4097u);
  EXPECT_EQ(grid_of_blocks(kPast32Bits).blocks, kMaxBlocks);
  EXPECT_EQ(grid_of_blocks(5).threads, kBlockSize);
}

TEST(Launch, PartsCoverEverythingAndAreNotMoreThanAskedFor) {
  for (const std::int64_t count :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{63}, std::int64_t{64}, std::int64_t{65}, std::int64_t{8191},
        std::int64_t{8192}, std::int64_t{8193}, kPast32Bits}) {
    for (const std::int64_t least : {1, 64, 16384}) {
      for (const std::int64_t most : {1, 128, 4096}) {
        const Parts parts = parts_of(count, least, most);
        EXPECT_GE(parts.length, least);
        EXPECT_LE(parts.count, most);
        EXPECT_GE(parts.count * parts.length, count);
        EXPECT_LT((parts.count - 1) * parts.length, count + (count == 0 ? 1 : 0)) << "the last part is empty";
      }
    }
  }
}

/// An angle is computed once, unless that leaves a GPU without threads.
TEST(Rope, RowsOfAPositionAreSplitOnlyForMoreThreads) {
  EXPECT_EQ(parts_of_rope(4096 * 64, 128).count, 1);
  EXPECT_EQ(parts_of_rope(kRopeThreads, 128).count, 1);
  EXPECT_EQ(parts_of_rope(kRopeThreads / 4, 128).length, 32);
  EXPECT_EQ(parts_of_rope(64, 128).count, 128) << "a text that grows by one position";
  for (const std::int64_t angles : {1, 64, 5000, 100'000, 1'000'000}) {
    for (const std::int64_t rows : {1, 7, 256}) {
      const Parts parts = parts_of_rope(angles, rows);
      EXPECT_GE(parts.length * parts.count, rows);
      EXPECT_LE(parts.count * angles, std::max(kRopeThreads, angles));
      EXPECT_GE(2 * parts.count * 2 * angles, std::min(kRopeThreads, rows * angles));
    }
  }
}

TEST(LaunchBlocking, IsAnyValueButNoneAndZero) {
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
  EXPECT_EQ(launch_blocking(), nullptr);
  for (const char* value : {"", "0"}) {
    ::setenv("CUDA_LAUNCH_BLOCKING", value, 1);
    EXPECT_EQ(launch_blocking(), nullptr) << value;
  }
  for (const char* value : {"1", "2", "yes"}) {
    ::setenv("CUDA_LAUNCH_BLOCKING", value, 1);
    EXPECT_STREQ(launch_blocking(), value);
  }
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
}

} // namespace
} // namespace triax::cuda
