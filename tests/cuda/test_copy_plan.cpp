// SPDX-License-Identifier: Apache-2.0
// Splitting of copies between host and device memory into cudaMemcpy2D calls, simulated with memcpy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "copy_plan.hpp"
#include "support/count_allocations.hpp"
#include "triax/device.hpp"

namespace triax::cuda {
namespace {

/// Same effect and requirements as cudaMemcpy2D.
void carry_out(const CopyPieces& pieces, const TensorView& to, const TensorView& from) {
  for (std::int64_t number = 0; number < pieces.count(); ++number) {
    const CopyPiece piece = pieces[number];
    EXPECT_GE(piece.to_pitch, piece.width);
    EXPECT_GE(piece.from_pitch, piece.width);
    for (std::size_t row = 0; row < piece.rows; ++row)
      std::memcpy(to.as<std::byte>() + piece.to + row * piece.to_pitch,
                  from.as<std::byte>() + piece.from + row * piece.from_pitch, piece.width);
  }
}

class CopyPlan : public testing::Test {
 protected:
  CopyPlan() { std::iota(from_.begin(), from_.end(), 1.0f); }
  /// Checks that the pieces copy the same elements as the host device, and change no others.
  void expect_copied(const Shape& shape, const std::array<std::int64_t, kMaxRank>& to_strides,
                     const std::array<std::int64_t, kMaxRank>& from_strides, std::int64_t most_pieces) {
    std::vector<float> got(4096, 0.0f), want(4096, 0.0f);
    const TensorView from(from_.data(), DType::f32, shape, from_strides);
    const TensorView to(got.data(), DType::f32, shape, to_strides);
    const std::size_t before = test::allocations();
    const CopyPieces pieces(to, from);
    EXPECT_EQ(test::allocations(), before) << to_text(to);
    EXPECT_LE(pieces.count(), most_pieces) << to_text(to);
    carry_out(pieces, to, from);
    const auto host = make_host_device();
    host->copy({want.data(), DType::f32, shape, to_strides}, from, *host->make_stream("test"));
    EXPECT_EQ(got, want) << to_text(to);
  }
  std::vector<float> from_ = std::vector<float>(4096);
};

TEST_F(CopyPlan, ContiguousViewsAreOnePiece) {
  expect_copied({3, 4, 5}, {20, 5, 1}, {20, 5, 1}, 1);
  expect_copied({7}, {1}, {1}, 1);
  expect_copied({}, {}, {}, 1);
}

TEST_F(CopyPlan, RowsAtDistancesAreOnePiece) {
  expect_copied({6, 5}, {5, 1}, {9, 1}, 1);
  expect_copied({2, 3, 5}, {15, 5, 1}, {24, 8, 1}, 1); // the two outer dimensions are merged
  expect_copied({6, 1, 5}, {11, 11, 1}, {9, 9, 1}, 1);
}

TEST_F(CopyPlan, OtherStridesTakeMorePieces) {
  expect_copied({2, 3, 4, 5}, {120, 30, 6, 1}, {60, 20, 5, 1}, 6);
  expect_copied({3, 2, 4, 5}, {60, 20, 5, 1}, {200, 90, 7, 1}, 6);
  expect_copied({4, 3}, {3, 1}, {1, 4}, 4);                      // transposed
  expect_copied({5, 3}, {6, 2}, {3, 1}, 5);                      // every second element
  expect_copied({4, 3}, {3, 1}, {0, 1}, 4);                      // the same row repeated
  expect_copied({2, 2, 2, 3}, {24, 12, 6, 2}, {0, 1, 0, 3}, 24); // no dimension is contiguous
}

/// A row of any length is one copy; rows are separate copies where CUDA does not take their distance.
TEST_F(CopyPlan, NoPitchIsLargerThanCudaTakes) {
  const std::int64_t far = (kMaxPitchBytes + 1) / 4; // in floats
  const TensorView row(nullptr, DType::f32, {3 * far});
  EXPECT_EQ(CopyPieces(row, row).count(), 1);
  EXPECT_EQ(CopyPieces(row, row)[0].rows, 1u);
  const TensorView rows(nullptr, DType::f32, {4, 3}, {far, 1}), packed(nullptr, DType::f32, {4, 3});
  for (const auto& pieces : {CopyPieces(rows, packed), CopyPieces(packed, rows)}) {
    ASSERT_EQ(pieces.count(), 4);
    for (std::int64_t number = 0; number < 4; ++number) EXPECT_EQ(pieces[number].rows, 1u);
  }
  EXPECT_EQ(CopyPieces(rows, packed)[3].to, 3 * 4 * far);
  const TensorView near(nullptr, DType::f32, {4, 3}, {far - 1, 1});
  EXPECT_EQ(CopyPieces(near, packed).count(), 1);
}

TEST_F(CopyPlan, HasNoPiecesForAnEmptyTensor) {
  EXPECT_EQ(CopyPieces({nullptr, DType::f32, {3, 0}}, {nullptr, DType::f32, {3, 0}}).count(), 0);
}

} // namespace
} // namespace triax::cuda
