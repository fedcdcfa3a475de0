// SPDX-License-Identifier: Apache-2.0
// The loops of each instruction set: accuracy of exp and the logistic function, random words, NaN and infinity.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "loops.hpp"
#include "sets.hpp"
#include "triax/half.hpp"

namespace triax::kernels_cpu {
namespace {

const float kInfinity = std::numeric_limits<float>::infinity();

/// Distance from the exact value, in units in the last place of a float.
double ulps(float got, double want) {
  const auto nearest = static_cast<float>(want);
  const double unit = std::max<double>(std::abs(std::nextafter(nearest, kInfinity) - nearest),
                                       std::numeric_limits<float>::denorm_min());
  return std::abs(got - want) / unit;
}

class LoopsTest : public testing::TestWithParam<const Loops*> {
 protected:
  const Loops& loops_ = *GetParam();

  float exp(float x) const { return loops_.sum_exp(&x, 0, 1); }
  float logistic(float x) const {
    float y;
    const float one = 1;
    loops_.silu_mul(&y, &x, &one, 1);
    return y / x;
  }
};

TEST_P(LoopsTest, ExpIsAccurateOverTheWholeRange) {
  double worst = 0;
  for (float x = -87; x < 88.7f; x += 0.0007f) worst = std::max(worst, ulps(exp(x), std::exp(double{x})));
  EXPECT_LT(worst, 2);
  double near_zero = 0;
  for (float x = -0.01f; x < 0.01f; x += 3e-7f) near_zero = std::max(near_zero, ulps(exp(x), std::exp(double{x})));
  EXPECT_LT(near_zero, 1.5);
  for (float x = -104; x < -87; x += 0.01f) EXPECT_LE(ulps(exp(x), std::exp(double{x})), 2) << x; // denormal results
}

TEST_P(LoopsTest, TransposesAnyShapeAndNothingBeyond) {
  for (const int rows : {1, 3, 8, 15, 16, 33}) {
    for (const int columns : {1, 7, 8, 16, 31, 48}) {
      const int to_stride = columns + 3, from_stride = rows + 2;
      std::vector<float> from(static_cast<std::size_t>(columns * from_stride)),
          to(static_cast<std::size_t>(rows * to_stride), -1);
      std::iota(from.begin(), from.end(), 0.0f);
      loops_.transpose(to.data(), to_stride, from.data(), from_stride, rows, columns);
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < to_stride; ++j) {
          const float want = j < columns ? static_cast<float>(j * from_stride + i) : -1;
          ASSERT_EQ(to[static_cast<std::size_t>(i * to_stride + j)], want)
              << rows << 'x' << columns << ' ' << i << ' ' << j;
        }
      }
    }
  }
}

TEST_P(LoopsTest, ExpHasTheRightEnds) {
  EXPECT_EQ(exp(0), 1);
  EXPECT_EQ(exp(-kInfinity), 0);
  EXPECT_EQ(exp(-200), 0);
  EXPECT_EQ(exp(kInfinity), kInfinity);
  EXPECT_EQ(exp(89), kInfinity);
  EXPECT_TRUE(std::isnan(exp(std::nanf(""))));
}

TEST_P(LoopsTest, LogisticIsAccurate) {
  double worst = 0;
  for (float x = -80; x < 80; x += 0.00131f) {
    if (x == 0) continue;
    worst = std::max(worst, ulps(logistic(x), 1 / (1 + std::exp(-double{x}))));
  }
  EXPECT_LT(worst, 5); // the test's own product and quotient round twice
}

TEST_P(LoopsTest, DropsTheElementsThatPhiloxSelects) {
  // Also across the overflow of the lower 32 bits of the block number, and from every element of a block.
  for (const std::uint64_t base : {std::uint64_t{0}, (std::uint64_t{1} << 34) - 300}) {
    for (std::uint64_t phase = 0; phase < 4; ++phase) {
      const DropRow row{11, 22, 33, 44, base + phase, drop_threshold(0.3f), 1.25f};
      std::vector<float> x(777, 2), y(777);
      loops_.dropout(y.data(), x.data(), 777, row);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::uint64_t element = base + phase + i;
        const bool dropped = philox_at({11, 22}, element, 33, 44)[element % 4] < drop_threshold(0.3f);
        ASSERT_EQ(y[i], dropped ? 0 : 2.5f) << base << " " << phase << " " << i;
      }
    }
  }
}

TEST_P(LoopsTest, NanAndInfinityStayVisible) {
  const std::int64_t n = 53;
  const float nan = std::nanf("");
  for (const std::int64_t at : {0, 17, 48, 52}) {
    std::vector<float> x(static_cast<std::size_t>(n), 0.5f), y(x), weight(x);
    x[static_cast<std::size_t>(at)] = nan;
    float mean = 0, rstd = 0;
    loops_.norm(y.data(), x.data(), weight.data(), weight.data(), n, 1e-5f, &mean, &rstd);
    EXPECT_TRUE(std::isnan(y[3]) && std::isnan(mean) && std::isnan(rstd));
    EXPECT_TRUE(std::isnan(loops_.softmax(y.data(), x.data(), 1, n, n)));
    EXPECT_TRUE(std::isnan(y[3]));
    loops_.gelu(y.data(), x.data(), n);
    EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(at)]));
    EXPECT_FALSE(std::isnan(y[static_cast<std::size_t>(at == 0 ? 1 : 0)]));
    EXPECT_TRUE(std::isnan(loops_.sum_squares(x.data(), n)));
    EXPECT_TRUE(std::isnan(loops_.sum_exp(x.data(), loops_.row_max(x.data(), n), n)));
    x[static_cast<std::size_t>(at)] = kInfinity;
    EXPECT_EQ(loops_.row_max(x.data(), n), kInfinity);
    EXPECT_EQ(loops_.sum_squares(x.data(), n), std::numeric_limits<double>::infinity());
  }
}

/// All 16-bit values, and floats near and between them; the bits must equal those of triax/half.hpp.
TEST_P(LoopsTest, HalvesAreThoseOfTheHeader) {
  std::vector<std::uint16_t> bits(1 << 16), back(bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(bits.size());
  const auto n = static_cast<std::int64_t>(bits.size()) - 3; // leaves a tail
  loops_.f16.widen(values.data(), bits.data(), n);
  for (std::size_t i = 0; i + 3 < bits.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(half_detail::f16_value(bits[i])));
  std::vector<float> around;
  for (std::size_t i = 0; i + 3 < bits.size(); ++i) {
    const std::uint32_t exact = std::bit_cast<std::uint32_t>(values[i]);
    // the value, adjacent floats, the midpoint to the next half, and the floats adjacent to the midpoint
    for (const std::uint32_t off : {0u, 1u, 0xFFFFFFFFu, 0x1000u, 0x0FFFu, 0x1001u})
      around.push_back(std::bit_cast<float>(exact + off));
  }
  for (const float value : {1e-8f, 2.9802322e-8f, 2.98023224e-8f, 5.9604645e-8f, 8.9406967e-8f, 1e-40f, 65519.996f,
                            65520.0f, 3.4e38f, -1e-8f, -65520.0f})
    around.push_back(value);
  std::vector<std::uint16_t> half(around.size());
  loops_.f16.narrow(half.data(), around.data(), static_cast<std::int64_t>(around.size()));
  for (std::size_t i = 0; i < around.size(); ++i)
    ASSERT_EQ(half[i], half_detail::f16_bits(around[i])) << std::bit_cast<std::uint32_t>(around[i]);
  loops_.bf16.narrow(half.data(), around.data(), static_cast<std::int64_t>(around.size()));
  for (std::size_t i = 0; i < around.size(); ++i) ASSERT_EQ(half[i], half_detail::bf16_bits(around[i])) << around[i];
}

TEST_P(LoopsTest, SumsDoNotLoseSmallValues) {
  const std::vector<float> ones(100003, 1.0f / 3);
  EXPECT_NEAR(loops_.sum_squares(ones.data(), 100003), 100003 * std::pow(double{ones[0]}, 2), 1e-8);
  std::vector<float> sums(1, 0);
  loops_.column_sums(sums.data(), ones.data(), 100003, 1, 1);
  EXPECT_NEAR(sums[0] / (100003 * double{ones[0]}), 1, 5e-5); // a single running sum has an error of 1e-3
}

/// Against the plain sum, for every remainder of a vector; the rows of b have a gap between them.
TEST_P(LoopsTest, ARowTimesRowsIsTheirInnerProducts) {
  for (const std::int64_t k : {1, 3, 15, 16, 17, 31, 32, 33, 63, 100, 771})
    for (const std::int64_t n : {1, 3, 7, 8, 9, 17}) {
      const std::int64_t gap = 2;
      const std::vector<float> a = numbers(k, 1), b = numbers(n * (k + gap), 2);
      std::vector<float> d(static_cast<std::size_t>(n), std::nanf("")), added(d.size(), 10.0f);
      loops_.multiply_row(d.data(), a.data(), b.data(), k + gap, n, k, 0.5f, 0);
      loops_.multiply_row(added.data(), a.data(), b.data(), k + gap, n, k, 1, 2);
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < k; ++i)
          sum += double{a[static_cast<std::size_t>(i)]} * double{b[static_cast<std::size_t>(j * (k + gap) + i)]};
        const double tolerance = 2e-6 * std::sqrt(static_cast<double>(k)) + 1e-6;
        EXPECT_NEAR(d[static_cast<std::size_t>(j)], 0.5 * sum, tolerance) << k << " " << n << " " << j;
        EXPECT_NEAR(added[static_cast<std::size_t>(j)], sum + 20, tolerance + 2e-6) << k << " " << n << " " << j;
      }
      float alone = 0; // a row has the same bits alone as among others
      loops_.multiply_row(&alone, a.data(), b.data() + (n - 1) * (k + gap), k + gap, 1, k, 0.5f, 0);
      EXPECT_EQ(alone, d.back()) << k << " " << n;
    }
}

/// 1 - beta in fp32 would be 1.3 % too large.
TEST_P(LoopsTest, AdamWAddsAsMuchOfAGradientAsBetaLeaves) {
  CpuSet set(1, loops_);
  const double beta1 = 0.99999, beta2 = 0.999999;
  std::vector<float> p(3, 0.0f), g(3, 0.5f), m(3, 0.0f), v(3, 0.0f);
  const StepScalars now{.lr = 1, .clip = 1, .step = 1};
  set.run(AdamW{view(p, {3}), view(g, {3}), view(m, {3}), view(v, {3}), {}, beta1, beta2, 1e-8, 0, &now});
  for (std::size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(m[i] / (0.5 * (1 - beta1)), 1, 1e-6);
    EXPECT_NEAR(v[i] / (0.25 * (1 - beta2)), 1, 1e-6);
    EXPECT_NEAR(p[i], -1, 1e-6); // the first step has the length of the rate
  }
}

INSTANTIATE_TEST_SUITE_P(All, LoopsTest, testing::ValuesIn(all_loops()),
                         [](const auto& loops) { return std::string(loops.param->name); });

} // namespace
} // namespace triax::kernels_cpu
