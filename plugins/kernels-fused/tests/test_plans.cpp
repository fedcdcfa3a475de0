// SPDX-License-Identifier: Apache-2.0
// Plans of work: every element is processed once, and the split depends on the shape only.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "adamw.hpp"
#include "columns.hpp"
#include "residual.hpp"
#include "scratch.hpp"
#include "squares.hpp"

namespace triax::kernels_fused {
namespace {

/// Also checks the second pass over kept packs: the same packs in the same order.
template <class T, class Plan>
void expect_each_taken_once(std::int64_t n) {
  std::vector<int> taken(static_cast<std::size_t>(n));
  for (unsigned lane = 0; lane < Plan::kLanes; ++lane) {
    const auto number_of = [](std::int64_t at) -> Packs<T, 1> { return {{{{static_cast<std::uint32_t>(at)}}}}; };
    Kept<T, Plan> kept;
    std::vector<std::int64_t> order;
    int last = -1;
    walk<T, Plan>(lane, n, number_of, [&](int number, std::int64_t at, const Packs<T, 1>& fetched) {
      EXPECT_TRUE(Plan::kPacks == 0 || number > last) << "a pack lies on another";
      EXPECT_EQ(fetched.of[0].words[0], at);
      last = number;
      kept.put(number, fetched);
      order.push_back(at);
      for (int i = 0; i < live_in_row<T, Plan>(n, at); ++i) ++taken[static_cast<std::size_t>(at + i)];
    });
    EXPECT_LT(last, std::max(Plan::kPacks, 1));
    std::size_t next = 0;
    kept.walk_again(lane, n, number_of, [&](std::int64_t at, const Packs<T, 1>& packs) {
      ASSERT_LT(next, order.size());
      EXPECT_EQ(at, order[next++]);
      EXPECT_EQ(packs.of[0].words[0], at);
    });
    EXPECT_EQ(next, order.size());
  }
  EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; })) << n;
}

template <class T>
void expect_rows_taken_once(std::int64_t n, bool packed) {
  by_row_plan<T>(n, packed, [&]<class Plan>(Plan) {
    EXPECT_EQ(Plan::kPacked, packed);
    EXPECT_TRUE(Plan::kPacks == 0 || n * static_cast<std::int64_t>(sizeof(T)) <= Plan::kBytes) << n;
    expect_each_taken_once<T, Plan>(n);
  });
}

TEST(Rows, EveryElementIsTakenOnce) {
  for (const std::int64_t n : {1, 3, 127, 129, 1023, 1025, 2047, 2049, 4097, 8193, 20000}) {
    expect_rows_taken_once<float>(n, false);
    expect_rows_taken_once<Bf16>(n, false);
  }
  for (const std::int64_t n : {8, 128, 512, 520, 1024, 1032, 2048, 2056, 4096, 4104, 8192, 8200, 16384, 16392, 40000}) {
    expect_rows_taken_once<float>(n, true);
    expect_rows_taken_once<Bf16>(n, true);
  }
}

TEST(Rows, HaveAsManyLanesPackedOrNot) {
  const auto lanes = []<class T>(T, std::int64_t n, bool packed) {
    unsigned out = 0;
    by_row_plan<T>(n, packed, [&]<class Plan>(Plan) { out = Plan::kLanes; });
    return out;
  };
  for (const bool packed : {false, true}) {
    EXPECT_EQ(lanes(float{}, 1024, packed), kWarp);
    EXPECT_EQ(lanes(float{}, 1028, packed), kBlock);
    EXPECT_EQ(lanes(Bf16{}, 2048, packed), kWarp);
    EXPECT_EQ(lanes(Bf16{}, 2056, packed), kBlock);
  }
}

TEST(Rows, AreLoadedInPacksOnlyWhereEveryRowIsAligned) {
  alignas(16) std::byte memory[64];
  const auto at = [&](std::ptrdiff_t offset) { return TensorView(memory + offset, DType::f32, {1}); };
  const TensorView none, aligned = at(0), odd = at(4);
  EXPECT_TRUE(packed_rows<float>(8, {&aligned, &none}));
  EXPECT_FALSE(packed_rows<float>(8, {&aligned, &odd}));
  EXPECT_FALSE(packed_rows<float>(6, {&aligned}));
  EXPECT_FALSE(packed_rows<Bf16>(12, {&aligned}));
  EXPECT_TRUE(packed_rows<Bf16>(16, {&aligned}));
}

TEST(Drop, BitsAreThoseOfEachElement) {
  std::vector<std::int64_t> samples = {5, 6};
  cuda::DropPlan plan;
  plan.key = philox_key(3, RandomPurpose::dropout);
  plan.threshold = drop_threshold(0.4f);
  plan.samples = samples.data();
  plan.batch = 2;
  plan.columns = 50;
  plan.width = 61; // rows begin at any offset within a Philox block
  plan.row0 = 3;
  plan.column0 = 2;
  for (std::int64_t row = 0; row < 9; ++row) {
    for (std::int64_t column = 0; column + 8 <= 50; ++column) {
      for (const int count : {1, 3, 4, 8}) {
        const unsigned bits = dropped_bits(plan, row, column, count);
        EXPECT_EQ(bits >> count, 0u);
        for (int i = 0; i < count; ++i)
          EXPECT_EQ((bits >> i & 1u) != 0, cuda::dropped(plan, row * 50 + column + i)) << row << " " << column + i;
      }
    }
  }
}

template <class T>
void expect_blocks_drop_each_element(const cuda::DropPlan& plan) {
  for (std::int64_t row = 0; row < 9; ++row) {
    const DropRow here = drop_row_in_blocks(plan, row);
    for (std::int64_t at = 0; at < plan.columns; at += kPack<T>) {
      Values<T> x;
      std::fill(std::begin(x.at), std::end(x.at), 3.0f);
      drop_in_blocks(x, plan, here, at);
      for (int i = 0; i < kPack<T>; ++i)
        EXPECT_EQ(x.at[i], cuda::dropped(plan, row * plan.columns + at + i) ? 0.0f : 3 * plan.scale)
            << row << " " << at;
    }
  }
}

TEST(Drop, BlocksAreThoseOfEachElement) {
  std::vector<std::int64_t> samples = {5, 6, 7};
  cuda::DropPlan plan;
  plan.key = philox_key(3, RandomPurpose::dropout);
  plan.site = 17;
  plan.threshold = drop_threshold(0.4f);
  plan.scale = 1.5f;
  plan.samples = samples.data();
  plan.batch = 3;
  plan.columns = 48;
  plan.width = 60;
  plan.row0 = std::int64_t{1} << 33; // element numbers need 64 bits
  plan.column0 = 12;
  EXPECT_TRUE(drops_in_blocks(plan, 9));
  expect_blocks_drop_each_element<float>(plan);
  expect_blocks_drop_each_element<Bf16>(plan);
}

/// Elements are numbered one by one if rows begin within a block, there are too many rows, or the drop is of scores.
TEST(Drop, InBlocksWhereRowsBeginWithOne) {
  cuda::DropPlan plan;
  plan.width = 60;
  plan.column0 = 12;
  EXPECT_TRUE(drops_in_blocks(plan, 0xFFFFFFFF));
  EXPECT_FALSE(drops_in_blocks(plan, std::int64_t{1} << 32));
  plan.column0 = 14;
  EXPECT_FALSE(drops_in_blocks(plan, 9));
  plan.column0 = 12;
  plan.width = 61;
  EXPECT_FALSE(drops_in_blocks(plan, 9));
  plan.width = 60;
  plan.scores = true;
  EXPECT_FALSE(drops_in_blocks(plan, 9));
}

TEST(AdamWTable, ChunksCoverEveryShardOnce) {
  StepScalars scalars;
  const std::int64_t sizes[] = {1, 0, AdamWTable::kChunk, AdamWTable::kChunk + 1, 0, 3, 5 * AdamWTable::kChunk};
  StepAdamW body{adamw_table({.scalars = &scalars})};
  for (const std::int64_t size : sizes) {
    const TensorView view(nullptr, DType::f32, {size});
    body.table.add({view, view, view, view, {}, 0.9, 0.95, 1e-8, 0, &scalars});
  }
  std::vector<std::int64_t> taken(std::size(sizes));
  for (std::int64_t chunk = 0; chunk < body.table.chunks(); ++chunk) {
    const auto shard = static_cast<std::size_t>(body.shard_of(chunk));
    const std::int64_t begin = (chunk - body.table.first_chunk[shard]) * AdamWTable::kChunk;
    EXPECT_EQ(begin, taken[shard]);
    taken[shard] += std::min(AdamWTable::kChunk, sizes[shard] - begin);
  }
  EXPECT_TRUE(std::equal(taken.begin(), taken.end(), sizes));
}

TEST(Parts, AreAMatterOfTheShape) {
  EXPECT_EQ(parts_of_rows(64).count, 1);
  EXPECT_EQ(parts_of_rows(65).count, 2);
  EXPECT_EQ(parts_of_rows(1 << 20).count, 64);
  EXPECT_EQ(parts_of_squares<float>(0).count, 0);
  EXPECT_EQ(parts_of_squares<float>(8 * 1024).count, 1);
  EXPECT_EQ(parts_of_squares<Bf16>(8 * 1024 + 1).count, 2);
  EXPECT_EQ(parts_of_squares<Bf16>(1024 * 1024).count, 128);
  EXPECT_EQ(parts_of_squares<float>(std::int64_t{1} << 40).count, 2048);
}

TEST(Scratch, IsThatOfTheShapeAlone) {
  const auto view = [](Shape shape, DType type = DType::f32) { return TensorView(nullptr, type, shape); };
  EXPECT_EQ(own_scratch(call_of(BiasBwd{view({33}), view({65, 33})})), 2 * 33 * sizeof(float));
  EXPECT_EQ(own_scratch(call_of(SumSquares{view({1}, DType::f64), view({8 * 1024 + 1})})), 2 * sizeof(double));
  EXPECT_EQ(own_scratch(call_of(EmbedBwd{view({9, 4}), view({7, 4}), view({7}, DType::i32), 0, 9})),
            7 * 2 * sizeof(std::int32_t));
  EXPECT_EQ(own_scratch(call_of(Add{view({2}), view({2}), view({2})})), std::nullopt);
}

} // namespace
} // namespace triax::kernels_fused
