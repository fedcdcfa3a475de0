// SPDX-License-Identifier: Apache-2.0
// The scratch size of an operation depends on its shape only.
#include <gtest/gtest.h>

#include "support/loaded_kernels.hpp"

namespace triax {
namespace {

class CublasScratch : public ::testing::Test {
 protected:
  plugin::Instance<KernelSet> make() {
    const plugin::Library& library = plugin::load(test::plugin_file("kernels-cublas"), "kernels");
    options_ = test::default_options(library);
    return plugin::create<KernelSet>(library, {options_, null_log(), layout_, 0, 1});
  }
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
};

TEST_F(CublasScratch, IsThatOfTheShapeAlone) {
  const auto set = make();
  const auto view = [](Shape shape, DType type = DType::f32) { return TensorView(nullptr, type, shape); };
  const auto scratch = [&](const auto& args) { return set->scratch_bytes(call_of(args)); };
  EXPECT_EQ(scratch(BiasBwd{view({33}), view({1, 33})}), 33 * sizeof(float));
  EXPECT_EQ(scratch(BiasBwd{view({33}), view({65, 33})}), 2 * 33 * sizeof(float));
  EXPECT_EQ(scratch(BiasBwd{view({33}), view({100'000, 33})}), 128 * 33 * sizeof(float));
  EXPECT_EQ(scratch(SumSquares{view({1}, DType::f64), view({16 * 1024 + 1})}), 2 * sizeof(double));
  const Gemm product{.d = view({2, 3}), .a = view({2, 4}), .b = view({4, 3})};
  EXPECT_EQ(scratch(product), std::size_t{32} << 20);
  EXPECT_GE(scratch(LinearFwd{.y = view({2, 3}), .x = view({2, 4}), .w = view({3, 4})}), scratch(product));
}

} // namespace
} // namespace triax
