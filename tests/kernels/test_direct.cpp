// SPDX-License-Identifier: Apache-2.0
// Products and fused operations compared with plain loops, norms of vectors, and what beta = 0 must not read.
#include "kernels/kit.hpp"

namespace triax::test {
namespace {

using Direct = FormulasTest;

TEST_F(Direct, GemmOfEveryTranspose) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      constexpr std::int64_t m = 19, n = 35, k = 6;
      Array a = random(ta ? Shape{k, m} : Shape{m, k}, 1), b = random(tb ? Shape{n, k} : Shape{k, n}, 2);
      Array d = random({m, n}, 3), want = d;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t x = 0; x < k; ++x) sum += a[ta ? x * m + i : i * k + x] * b[tb ? j * k + x : x * n + j];
          want[i * n + j] = 1.5 * sum - 0.5 * want[i * n + j];
        }
      }
      run(Gemm{d, a, b, ta, tb, 1.5, -0.5});
      expect_near(d, want, 1e-14);
    }
  }
}

TEST_F(Direct, GemmOverTwoBatchDimensionsWithStrides) {
  // a holds heads as [s, b, h, d]; the product is batched over (b, h).
  Array a = random({4, 2, 3, 5}, 1), b = random({2, 3, 5, 2}, 2), d = unwritten({2, 3, 4, 2});
  const TensorView heads(a.data.data(), DType::f64, {2, 3, 4, 5}, {15, 5, 30, 1});
  run(Gemm{.d = d, .a = heads, .b = b});
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t s = 0; s < 4; ++s) {
      for (std::int64_t j = 0; j < 2; ++j) {
        double sum = 0;
        for (std::int64_t x = 0; x < 5; ++x) sum += a[s * 30 + i * 5 + x] * b[i * 10 + x * 2 + j];
        ASSERT_NEAR(d[i * 8 + s * 2 + j], sum, 1e-14);
      }
    }
  }
}

TEST_F(Direct, BetaZeroDoesNotReadTheProduct) {
  Array a = random({3, 4}, 1), b = random({4, 5}, 2), d = unwritten({3, 5});
  run(Gemm{.d = d, .a = a, .b = b});
  for (const double value : d.data) EXPECT_TRUE(std::isfinite(value));
  run(Gemm{.d = d, .a = a, .b = b, .alpha = 0});
  for (const double value : d.data) EXPECT_EQ(value, 0);
}

TEST_F(Direct, BiasDropoutAddIsItsFormula) {
  constexpr std::int64_t s = 3, b = 2, h = 9;
  for (const float p : {0.0f, 0.4f}) {
    for (const bool biased : {false, true}) {
      Longs samples({b}, {7, 9});
      const Drop drop{.p = p,
                      .key = philox_key(5, RandomPurpose::dropout),
                      .site = 6,
                      .samples = samples,
                      .row0 = 1,
                      .column0 = 2,
                      .rows = 8,
                      .width = 20};
      Array x = random({s, b, h}, 1), bias = random({h}, 2), residual = random({s, b, h}, 3), y = unwritten({s, b, h});
      Array want({s, b, h}, 0.0);
      for (std::int64_t r = 0; r < s * b; ++r) {
        for (std::int64_t j = 0; j < h; ++j) {
          const std::int64_t e = (1 + r / b) * 20 + 2 + j;
          const PhiloxBlock block = philox_at(drop.key, static_cast<std::uint64_t>(e), 6, r % b ? 9 : 7);
          const bool dropped = p > 0 && block[static_cast<std::size_t>(e % 4)] < drop_threshold(p);
          const double branch = x[r * h + j] + (biased ? bias[j] : 0);
          want[r * h + j] = residual[r * h + j] + (dropped ? 0 : branch / (1 - static_cast<double>(p)));
        }
      }
      const TensorView given = biased ? TensorView(bias) : TensorView{};
      run(BiasDropoutAdd{y, x, given, residual, drop});
      expect_near(y, want, 1e-14);

      Array weight = random({h}, 4), norm_bias = random({h}, 5), mean = unwritten({s * b}), rstd = mean;
      Array normed = unwritten({s, b, h}), want_normed = normed, stream = residual;
      run(NormFwd{NormKind::layer, want_normed, y, weight, norm_bias, mean, rstd, 1e-5});
      run(BiasDropoutAddNorm{stream, normed, mean, rstd, x, given, stream, drop, NormKind::layer, weight, norm_bias,
                             1e-5});
      EXPECT_EQ(stream.data, y.data); // y may be the residual
      EXPECT_EQ(normed.data, want_normed.data);
    }
  }
}

TEST_F(Direct, NormIsItsFormula) {
  Array x({1, 4}, {1, 2, 4, 9}), w({4}, {1, 1, 2, 2}), b({4}, {0, 1, 0, 0}), y = unwritten({1, 4}),
                                                                             mean = unwritten({1});
  Array rstd = unwritten({1});
  run(NormFwd{NormKind::layer, y, x, w, b, mean, rstd, 0.5});
  const double variance = (9.0 + 4 + 0 + 25) / 4, r = 1 / std::sqrt(variance + 0.5);
  EXPECT_DOUBLE_EQ(mean[0], 4);
  EXPECT_DOUBLE_EQ(rstd[0], r);
  expect_near(y, Array({4}, {-3 * r, -2 * r + 1, 0, 10 * r}), 1e-15);
  Array untouched({1}, 77.0);
  run(NormFwd{NormKind::rms, y, x, w, {}, untouched, rstd, 0.5});
  const double root = 1 / std::sqrt(102.0 / 4 + 0.5);
  expect_near(y, Array({4}, {root, 2 * root, 8 * root, 18 * root}), 1e-15);
  EXPECT_EQ(untouched[0], 77); // an rms norm has no mean
}

TEST_F(Direct, Activations) {
  Array x({1, 4}, {0, 1, -1, 3}), y = unwritten({1, 4}), gated = unwritten({1, 2});
  run(ActFwd{Activation::gelu_tanh, y, x});
  // Values of PyTorch's gelu(approximate="tanh").
  expect_near(y, Array({4}, {0, 0.8411919906082768, -0.15880800939172324, 2.996362607918227}), 1e-15);
  run(ActFwd{Activation::silu_mul, gated, x});
  expect_near(gated, Array({2}, {0, 3 / (1 + std::exp(-1.0))}), 1e-15);
}

TEST_F(Direct, SumOfSquares) {
  Array x({3}, {3, -4, 12}), out = unwritten({1});
  run(SumSquares{out, x});
  EXPECT_EQ(out[0], 169);
}

TEST_F(Direct, NoRowsIsNoWork) {
  Array x({0, 5}, 0.0), bias = random({5}, 1), dbias = bias;
  run(BiasAdd{x, x, bias});
  run(BiasBwd{dbias, x});
  EXPECT_EQ(dbias.data, bias.data);
  Array none({0, 3}, 0.0), w = random({3, 5}, 2), dw = w;
  run(LinearFwd{.y = none, .x = x, .w = w});
  run(LinearBwdWeight{dw, {}, none, x});
  EXPECT_EQ(dw.data, w.data);
}

} // namespace
} // namespace triax::test
