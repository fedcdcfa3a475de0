// SPDX-License-Identifier: Apache-2.0
// The table of shards of an AdamW launch: every element belongs to one part.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "adamw_table.hpp"

namespace triax::kernels_fused {
namespace {

TEST(AdamWTable, PartsCoverEveryShardOnce) {
  StepScalars scalars;
  const std::int64_t sizes[] = {1, 0, AdamWTable::kPartLength,    AdamWTable::kPartLength + 1,
                                0, 3, 5 * AdamWTable::kPartLength};
  AdamWTable table({.scalars = &scalars});
  for (const std::int64_t size : sizes) {
    const TensorView view(nullptr, DType::f32, {size});
    table.add({view, view, view, view, {}, 0.9, 0.95, 1e-8, 0, &scalars}, true);
  }
  std::vector<std::int64_t> taken(std::size(sizes));
  for (std::int64_t part = 0; part < table.parts(); ++part) {
    const auto shard = static_cast<std::size_t>(table.shard_of(part));
    const std::int64_t begin = (part - table.first_part[shard]) * AdamWTable::kPartLength;
    EXPECT_EQ(begin, taken[shard]);
    taken[shard] += std::min(AdamWTable::kPartLength, sizes[shard] - begin);
  }
  EXPECT_TRUE(std::equal(taken.begin(), taken.end(), sizes));
}

} // namespace
} // namespace triax::kernels_fused
