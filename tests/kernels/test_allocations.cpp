// SPDX-License-Identifier: Apache-2.0
// Calls do not allocate: neither their checks, nor their counts, nor the expansion of a fused operation.
#include "kernels/kit.hpp"
#include "support/count_allocations.hpp"

namespace triax::test {
namespace {

class Allocations : public KernelsTest {
 protected:
  template <class Args>
  std::size_t of(const Args& args) {
    std::vector<std::byte> scratch(set().scratch_bytes(call_of(args)));
    const std::size_t before = allocations();
    set().issue(call_of(args), {stream(), scratch});
    return allocations() - before;
  }
};

TEST_F(Allocations, TheHookCounts) {
  const std::size_t before = allocations();
  const auto one = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(allocations() - before, 2u) << *one;
}

TEST_F(Allocations, AttentionMakesNone) {
  Array q = random({6, 2, 4, 3}, 1), k = random({6, 2, 2, 3}, 2), o = q, lse({2, 4, 6}, 0.0), dq = q, dk = k, dv = k;
  Longs samples({2}, {1, 2});
  const Mask mask{Mask::Kind::causal, 0, 0, {}};
  const Drop drop{.p = 0.1f, .samples = samples, .rows = 6, .width = 6};
  EXPECT_EQ(of(AttentionFwd{o, lse, q, k, k, 1, mask, drop}), 0u);
  EXPECT_EQ(of(AttentionBwd{dq, dk, dv, o, q, k, k, o, lse, 1, mask, drop}), 0u);
}

TEST_F(Allocations, BlocksMakeNone) {
  Array x = random({6, 2, 4}, 1), w = random({8, 4}, 2), bias = random({8}, 3), y({6, 2, 8}, 0.0), z = y;
  Array short_bias = random({4}, 4), mean({12}, 0.0), rstd = mean, out = x, normed = x;
  EXPECT_EQ(of(LinearFwd{y, z, x, w, bias, Activation::gelu_tanh}), 0u);
  EXPECT_EQ(of(LinearBwdInput{out, y, w}), 0u);
  EXPECT_EQ(of(LinearBwdWeight{w, bias, y, x}), 0u);
  EXPECT_EQ(of(BiasDropoutAddNorm{
                out, normed, mean, rstd, x, short_bias, x, {}, NormKind::layer, short_bias, short_bias, 1e-5}),
            0u);
}

} // namespace
} // namespace triax::test
