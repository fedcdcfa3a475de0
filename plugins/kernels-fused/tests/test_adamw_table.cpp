// SPDX-License-Identifier: Apache-2.0
// The table of shards of an AdamW launch: every element belongs to one part.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

/// Also where a factor is not a number, which is not equal to itself.
TEST(AdamWTable, GroupsHaveTheFactorsOfTheirFirstShard) {
  StepScalars scalars;
  const TensorView view(nullptr, DType::f32, {1});
  const auto shard = [&](double beta1) { return AdamW{view, view, view, view, {}, beta1, 0.95, 1e-8, 0, &scalars}; };
  std::vector<AdamW> shards(AdamWTable::kMaxShards + 3, shard(0.9));
  for (const double beta1 : {std::nan(""), std::nan(""), 0.8}) shards.push_back(shard(beta1));
  std::span<const AdamW> left = shards;
  for (const std::size_t want :
       {std::size_t{AdamWTable::kMaxShards}, std::size_t{3}, std::size_t{1}, std::size_t{1}, std::size_t{1}}) {
    AdamWTable table(left.front());
    const std::size_t added = table.add_group(left, [](const AdamW&) { return true; });
    EXPECT_EQ(added, want);
    EXPECT_EQ(table.parts(), static_cast<std::int64_t>(want));
    left = left.subspan(added);
  }
  EXPECT_TRUE(left.empty());
}

} // namespace
} // namespace triax::kernels_fused
