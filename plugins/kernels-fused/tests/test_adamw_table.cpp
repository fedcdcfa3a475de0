// SPDX-License-Identifier: Apache-2.0
// The table of shards of an AdamW launch: every element belongs to one chunk.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "adamw_table.hpp"

namespace triax::kernels_fused {
namespace {

TEST(AdamWTable, ChunksCoverEveryShardOnce) {
  StepScalars scalars;
  const std::int64_t sizes[] = {1, 0, AdamWTable::kChunk, AdamWTable::kChunk + 1, 0, 3, 5 * AdamWTable::kChunk};
  AdamWTable table({.scalars = &scalars});
  for (const std::int64_t size : sizes) {
    const TensorView view(nullptr, DType::f32, {size});
    table.add({view, view, view, view, {}, 0.9, 0.95, 1e-8, 0, &scalars}, true);
  }
  std::vector<std::int64_t> taken(std::size(sizes));
  for (std::int64_t chunk = 0; chunk < table.chunks(); ++chunk) {
    const auto shard = static_cast<std::size_t>(table.shard_of(chunk));
    const std::int64_t begin = (chunk - table.first_chunk[shard]) * AdamWTable::kChunk;
    EXPECT_EQ(begin, taken[shard]);
    taken[shard] += std::min(AdamWTable::kChunk, sizes[shard] - begin);
  }
  EXPECT_TRUE(std::equal(taken.begin(), taken.end(), sizes));
}

} // namespace
} // namespace triax::kernels_fused
