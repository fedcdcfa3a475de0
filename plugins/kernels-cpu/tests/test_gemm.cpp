// SPDX-License-Identifier: Apache-2.0
// Tiles of matrix products: they cover the product once, there are enough of them, and threads do not change a bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "cpu_gemm.hpp"
#include "openmp.hpp"
#include "sets.hpp"

namespace triax::kernels_cpu {
namespace {

struct Sizes {
  std::int64_t m, n, k;
};

TEST(Tiles, CoverTheProductOnce) {
  for (const auto& [m, n, k] : {Sizes{1, 1, 1},
                                {1, 5000, 700},
                                {5000, 1, 700},
                                {257, 384, 999},
                                {100, 100, 100},
                                {2048, 1152, 384},
                                {33, 4097, 64},
                                {0, 4, 4}}) {
    const Tiles tiles = tiles_of(m, n, k);
    std::vector<int> covered(static_cast<std::size_t>(m * n));
    for (std::int64_t index = 0; index < tiles.count(); ++index) {
      float d = 0;
      const Product part = tile({&d, &d, &d, n, k, n, m, n, k}, tiles, index);
      ASSERT_GT(part.m, 0);
      ASSERT_GT(part.n, 0);
      const std::int64_t row = (part.d - &d) / n, column = (part.d - &d) % n;
      for (std::int64_t i = 0; i < part.m; ++i) {
        for (std::int64_t j = 0; j < part.n; ++j) ++covered[static_cast<std::size_t>((row + i) * n + column + j)];
      }
    }
    EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), m * n) << m << " " << n << " " << k;
  }
}

TEST(Tiles, OfAModelsShapesAreAMultipleOfFour) {
  for (const auto& [m, n, k] : {Sizes{256, 1152, 384},
                                {256, 384, 384},
                                {256, 1536, 384},
                                {1536, 384, 256},
                                {2048, 1152, 384},
                                {256, 257, 384},
                                {384, 1536, 2048},
                                {512, 4096, 1024}}) {
    const Tiles tiles = tiles_of(m, n, k);
    EXPECT_EQ(tiles.count() % 4, 0) << m << " " << n << " " << k << ": " << tiles.rows << " x " << tiles.columns;
  }
}

/// Tiles of a product of one row are small: each element of b is read once, and all threads read.
TEST(Tiles, OfOneRowAreMany) {
  const Product product{.d = nullptr,
                        .a = nullptr,
                        .b = nullptr,
                        .ldd = 768,
                        .lda = 768,
                        .ldb = 768,
                        .m = 1,
                        .n = 768,
                        .k = 768,
                        .transpose_b = true};
  EXPECT_GE(tiles_of(product).count(), 4);
  Product transposed = product;
  transposed.transpose_b = false;
  EXPECT_EQ(tiles_of(transposed).count(), tiles_of(1, 768, 768).count());
}

/// The columns are split at multiples of a step, whose last one may be beyond the end.
TEST(Tiles, OfOneRowCoverItOnce) {
  float d = 0;
  for (const std::int64_t k : {768, 4096, 8192, 65536})
    for (std::int64_t n = 1; n <= 1500; ++n) {
      const Product product{&d, &d, &d, n, k, k, 1, n, k, false, true};
      const Tiles tiles = tiles_of(product);
      std::int64_t end = 0;
      for (std::int64_t index = 0; index < tiles.count(); ++index) {
        const Product part = tile(product, tiles, index);
        ASSERT_EQ(part.d - product.d, end) << n << " columns, sums of " << k;
        ASSERT_GE(part.n, 0);
        end += part.n;
      }
      ASSERT_EQ(end, n);
    }
}

TEST(Multiply, LeavesTheCallersOpenMpAsItWas) {
  omp_set_num_threads(3);
  float one = 1, d = 0;
  multiply({&d, &one, &one, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(d, 1);
  EXPECT_EQ(omp_get_max_threads(), 3);
}

struct Form {
  Sizes size;
  bool ta, tb;
};

void PrintTo(const Form& form, std::ostream* out) {
  *out << form.size.m << "x" << form.size.n << "x" << form.size.k << (form.ta ? " ta" : "") << (form.tb ? " tb" : "");
}

class Products : public testing::TestWithParam<Form> {};

TEST_P(Products, AreRightAndDoNotDependOnThreads) {
  const auto [size, ta, tb] = GetParam();
  const auto [m, n, k] = size;
  std::vector<float> a = numbers(m * k, 1), b = numbers(k * n, 2), first;
  for (const int threads : {1, 2, 3, 4}) {
    std::vector<float> d(static_cast<std::size_t>(m * n), std::nanf(""));
    CpuSet set(threads);
    set.run(Gemm{.d = view(d, {m, n}),
                 .a = view(a, ta ? Shape{k, m} : Shape{m, k}),
                 .b = view(b, tb ? Shape{n, k} : Shape{k, n}),
                 .transpose_a = ta,
                 .transpose_b = tb});
    if (threads == 1) {
      first = d;
      const auto at = [&](const std::vector<float>& x, std::int64_t i) {
        return double{x[static_cast<std::size_t>(i)]};
      };
      for (std::int64_t i = 0; i < m; i += 7) {
        for (std::int64_t j = 0; j < n; j += 11) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l)
            sum += at(a, ta ? l * m + i : i * k + l) * at(b, tb ? j * k + l : l * n + j);
          ASSERT_NEAR(at(d, i * n + j), sum, 2e-6 * std::sqrt(static_cast<double>(k)) + 1e-6) << i << " " << j;
        }
      }
    }
    EXPECT_EQ(std::memcmp(first.data(), d.data(), d.size() * sizeof(float)), 0) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         testing::Values(Form{{80, 48, 192}, false, true}, Form{{64, 64, 1024}, false, true},
                                         Form{{48, 48, 4096}, false, true}, Form{{256, 1152, 384}, false, true},
                                         Form{{256, 384, 1536}, false, false}, Form{{1536, 384, 256}, true, false},
                                         Form{{257, 384, 512}, true, false}, Form{{515, 259, 131}, true, true},
                                         Form{{1, 3000, 400}, false, true}, Form{{1, 257, 4097}, false, true},
                                         Form{{1, 3, 5}, false, true}, Form{{1, 768, 768}, false, false}));

TEST(Products, BatchesDoNotDependOnThreads) {
  std::vector<float> a = numbers(2 * 3 * 150 * 64, 3), b = numbers(2 * 3 * 170 * 64, 4), first;
  for (const int threads : {1, 2, 3, 4}) {
    std::vector<float> d(2 * 3 * 150 * 170);
    CpuSet set(threads);
    set.run(Gemm{.d = view(d, {2, 3, 150, 170}),
                 .a = view(a, {2, 3, 150, 64}),
                 .b = view(b, {2, 3, 170, 64}),
                 .transpose_b = true});
    if (threads == 1) first = d;
    EXPECT_EQ(std::memcmp(first.data(), d.data(), d.size() * sizeof(float)), 0) << threads << " threads";
  }
}

TEST(Products, OfAnEmptyBatchWriteNothing) {
  std::vector<float> a(1), b(1), d{7};
  CpuSet set(1);
  set.run(
      Gemm{.d = view(d, {0, 150, 170}), .a = view(a, {0, 150, 64}), .b = view(b, {0, 170, 64}), .transpose_b = true});
  EXPECT_EQ(d.front(), 7);
}

} // namespace
} // namespace triax::kernels_cpu
