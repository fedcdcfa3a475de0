// SPDX-License-Identifier: Apache-2.0
// Kernels give the same bits with few blocks, each of which loops over several work items, as with a full grid. Detects
// state that a block leaves in shared memory for its next item.
#include <gtest/gtest.h>

#include "gpu.hpp"
#include "support/gpu_kernels_suite.hpp"
#include "support/host_cuda/launch.hpp"

namespace triax::test {
namespace {

/// Limits the grid size during its lifetime.
class FewBlocks {
 public:
  explicit FewBlocks(unsigned most) { test::host_cuda::set_most_blocks(most); }
  FewBlocks(const FewBlocks&) = delete;
  FewBlocks& operator=(const FewBlocks&) = delete;
  ~FewBlocks() { test::host_cuda::set_most_blocks(0); }
};

using InFewBlocks = OnGpu;

TEST_F(InFewBlocks, OperationsGiveTheSameBits) {
  for (const OperationCase& one : suite_cases(DType::f32)) {
    const CaseResults whole = run_case(tested->set(), tested->device(), one, one.dtype);
    const FewBlocks few(2);
    EXPECT_TRUE(whole == run_case(tested->set(), tested->device(), one, one.dtype)) << one.name;
  }
}

using Walks = cuda::Gpu;

TEST_F(Walks, MovementsTakeEveryElement) {
  constexpr std::int64_t kCount = 5003; // two blocks process 512 elements at a time, or 512 groups of four
  std::vector<float> numbers(2 * kCount);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1000);
  const FewBlocks few(2);
  for (const std::int64_t step : {1, 2}) {
    const auto strided = [&](const TensorView& whole) {
      return TensorView(whole.data(), whole.dtype(), {kCount}, {step});
    };
    const auto expected = [&](float factor, float more) {
      std::vector<float> out(kCount);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = factor * numbers[i * static_cast<std::size_t>(step)] + more;
      return out;
    };
    const TensorView from = strided(place(DType::f32, {2 * kCount}, numbers)), to = place(DType::f32, {kCount});
    const TensorView integers = place(DType::i32, {kCount});
    device->convert(integers, from, *stream);
    device->convert(to, integers, *stream);
    EXPECT_EQ(values<float>(to), expected(1, 0)) << step;
    device->add(to, from, *stream);
    EXPECT_EQ(values<float>(to), expected(2, 0)) << step;
    device->fill(from, 7, *stream);
    device->copy(to, from, *stream);
    EXPECT_EQ(values<float>(to), expected(0, 7)) << step;
  }
}

} // namespace
} // namespace triax::test
