// SPDX-License-Identifier: Apache-2.0
// Blocks of tensors are in row-major order, complete and of limited size; elements convert with one rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "checkpoint/blocks.hpp"
#include "triax/half.hpp"

namespace triax::checkpoint {
namespace {

/// The flat number of the first element, if the elements of the box follow one another in the whole tensor.
std::int64_t first_element(const Shape& whole, const Shape& begin, const Shape& size) {
  std::int64_t out = 0;
  bool complete_after = true;
  for (int dim = whole.rank() - 1; dim >= 0; --dim) {
    EXPECT_TRUE(complete_after || size[dim] == 1) << to_text(begin) << to_text(size);
    if (size[dim] != whole[dim]) complete_after = false;
  }
  for (int dim = 0; dim < whole.rank(); ++dim) out = out * whole[dim] + begin[dim];
  return out;
}

TEST(TensorBlocks, FollowOneAnother) {
  constexpr std::int64_t kMany = kBlockElements;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 4, 5}, Shape{kMany}, Shape{kMany + 1}, Shape{3, kMany - 1},
                             Shape{2, 3, kMany + 7}, Shape{2, kMany / 2 + 1, 2}, Shape{5, 2, 3, kMany / 4}}) {
    std::int64_t next = 0;
    for_each_block(shape, [&](const Shape& begin, const Shape& size) {
      ASSERT_LE(size.elements(), kBlockElements);
      ASSERT_GT(size.elements(), 0);
      ASSERT_EQ(first_element(shape, begin, size), next) << to_text(shape);
      next += size.elements();
    });
    EXPECT_EQ(next, shape.elements()) << to_text(shape);
  }
}

TEST(TensorBlocks, OfAnEmptyTensorAreNone) {
  for_each_block({0, 5}, [](const Shape&, const Shape&) { FAIL(); });
  for_each_block({std::int64_t{1} << 59, 0}, [](const Shape&, const Shape&) { FAIL(); });
}

TEST(TensorElements, RoundOnce) {
  const std::vector<double> values = {1.0, -0.0, 1.0 + 0x1p-12 + 0x1p-40, 1e-300, 65504.0};
  std::vector<F16> half(values.size());
  EXPECT_EQ(from_doubles(values, DType::f16, reinterpret_cast<std::byte*>(half.data())), 0u);
  std::vector<double> back(values.size());
  to_doubles(DType::f16, reinterpret_cast<const std::byte*>(half.data()), back);
  EXPECT_EQ(back[0], 1.0);
  EXPECT_TRUE(std::signbit(back[1]));
  EXPECT_EQ(back[2], F16(values[2])); // by way of float it would be rounded twice
  EXPECT_EQ(back[3], 0.0);
  EXPECT_EQ(back[4], 65504.0);
}

TEST(TensorElements, ThatOverflowAreCounted) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {1e5, kInfinity, std::nan(""), -1e39, 1e308};
  std::vector<std::byte> out(values.size() * 8);
  EXPECT_EQ(from_doubles(values, DType::f16, out.data()), 3u);
  EXPECT_EQ(from_doubles(values, DType::bf16, out.data()), 2u);
  EXPECT_EQ(from_doubles(values, DType::f32, out.data()), 2u);
  EXPECT_EQ(from_doubles(values, DType::f64, out.data()), 0u);
}

TEST(TensorElements, OfIntegersAreValues) {
  const std::vector<std::int64_t> integers = {-3, 0, std::int64_t{1} << 40};
  std::vector<double> values(3);
  to_doubles(DType::i64, reinterpret_cast<const std::byte*>(integers.data()), values);
  EXPECT_EQ(values, (std::vector<double>{-3, 0, 0x1p40}));
}

} // namespace
} // namespace triax::checkpoint
