// How work is cut: everything is taken once, by the shape alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "adamw.hpp"
#include "columns.hpp"
#include "residual.hpp"
#include "scratch.hpp"
#include "squares.hpp"

namespace triax::fused {
namespace {

template <class T, class Plan>
void expect_each_taken_once(std::int64_t n) {
  std::vector<int> taken(static_cast<std::size_t>(n));
  for (unsigned lane = 0; lane < Plan::kLanes; ++lane) {
    int last = -1;
    walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
      EXPECT_TRUE(Plan::kKept == 0 || number > last) << "a pack lies on another";
      last = number;
      for (int i = 0; i < live_of<T>(n, at); ++i) ++taken[static_cast<std::size_t>(at + i)];
    });
    EXPECT_LT(last * kPack<T>, std::max(Plan::kKept, 1));
  }
  EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; })) << n;
}

TEST(Rows, EveryElementIsTakenOnce) {
  for (const std::int64_t n : {1, 3, 4, 8, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 8193, 20000}) {
    by_row_plan(n, [&]<class Plan>(Plan) {
      EXPECT_TRUE(Plan::kKept == 0 || n <= Plan::kLongest);
      expect_each_taken_once<float, Plan>(n);
      expect_each_taken_once<Bf16, Plan>(n);
    });
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
  plan.width = 61; // rows begin anywhere among the words of a block
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
} // namespace triax::fused
