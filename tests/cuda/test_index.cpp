// SPDX-License-Identifier: Apache-2.0
// Element offsets of views, computed on the host with the kernels' code.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "triax/cuda/index.hpp"

namespace triax::cuda {
namespace {

/// The same offsets from four nested loops.
std::vector<std::int64_t> by_loops(const TensorView& view) {
  std::int64_t size[kMaxRank] = {1, 1, 1, 1}, stride[kMaxRank] = {};
  for (int dim = 0; dim < view.rank(); ++dim) {
    size[kMaxRank - view.rank() + dim] = view.size(dim);
    stride[kMaxRank - view.rank() + dim] = view.stride(dim);
  }
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < size[0]; ++i)
    for (std::int64_t j = 0; j < size[1]; ++j)
      for (std::int64_t k = 0; k < size[2]; ++k)
        for (std::int64_t l = 0; l < size[3]; ++l)
          out.push_back(i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3]);
  return out;
}

void expect_same(const TensorView& view) {
  const Strided at = strided(view);
  const std::vector<std::int64_t> want = by_loops(view);
  ASSERT_EQ(static_cast<std::int64_t>(want.size()), view.elements());
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(offset_of(at, static_cast<std::int64_t>(i)), want[i]) << to_text(view) << ", element " << i;
}

TEST(Index, OfViewsOfEveryRank) {
  float memory[1]; // never read
  expect_same({memory, DType::f32, {}});
  expect_same({memory, DType::f32, {7}});
  expect_same({memory, DType::f32, {3, 5}});
  expect_same({memory, DType::f32, {3, 1, 5}});
  expect_same({memory, DType::f32, {2, 3, 4, 5}});
}

TEST(Index, OfStridedTransposedAndRepeatedViews) {
  float memory[1];
  const TensorView whole(memory, DType::f32, {4, 5, 6, 7});
  for (int dim = 0; dim < 4; ++dim) {
    const TensorView part = whole.slice(dim, 1, 3);
    const TensorView at_zero(memory, DType::f32, part.shape(),
                             {part.stride(0), part.stride(1), part.stride(2), part.stride(3)});
    EXPECT_EQ(strided(at_zero).flat, dim == 0);
    expect_same(at_zero);
  }
  expect_same({memory, DType::f32, {3, 2}, {1, 3}});
  expect_same({memory, DType::f32, {5, 3}, {0, 1}});
}

TEST(Index, PastTwoToTheThirtyOne) {
  const TensorView large(nullptr, DType::u8, {3, 70000, 50000}, {7'000'000'000, 100'000, 2, 0});
  const Strided at = strided(large);
  const std::int64_t element = 2 * (std::int64_t{70000} * 50000) + std::int64_t{69999} * 50000 + 49999; // last element
  EXPECT_EQ(element, large.elements() - 1);
  EXPECT_EQ(offset_of(at, element), 2 * 7'000'000'000 + 69999 * std::int64_t{100'000} + 49999 * 2);
}

} // namespace
} // namespace triax::cuda
