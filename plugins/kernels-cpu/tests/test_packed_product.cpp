// SPDX-License-Identifier: Apache-2.0
// Products by the loops of each instruction set: values, bits and epilogues, at sizes that fill no tile.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "packed_product.hpp"
#include "sets.hpp"

namespace triax::kernels_cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape3 {
  std::int64_t m, n, k;
};

/// A product of matrices whose rows have a gap between them. The buffers end with the last element.
class Case {
 public:
  Case(const Shape3& size, bool transpose_a, bool transpose_b, float alpha = 1, float beta = 0)
      : a_(matrix(transpose_a ? size.k : size.m, transpose_a ? size.m : size.k, 1)),
        b_(matrix(transpose_b ? size.n : size.k, transpose_b ? size.k : size.n, 2)),
        d_(matrix(size.m, size.n, 3)),
        before_(d_) {
    product_ = {.d = d_.data(),
                .a = a_.data(),
                .b = b_.data(),
                .ldd = size.n + kGap,
                .lda = (transpose_a ? size.m : size.k) + kGap,
                .ldb = (transpose_b ? size.k : size.n) + kGap,
                .m = size.m,
                .n = size.n,
                .k = size.k,
                .transpose_a = transpose_a,
                .transpose_b = transpose_b,
                .alpha = alpha,
                .beta = beta};
    if (beta == 0) std::fill(d_.begin(), d_.end(), kNan);
  }
  const Product& product() const { return product_; }
  std::vector<float>& d() { return d_; }

  void run(const Loops& loops, int threads = 1, const Epilogue& epilogue = {}) const {
    const PackedTiles tiles(product_, loops, threads);
    std::vector<float> scratch(static_cast<std::size_t>(tiles.scratch_floats()), kNan);
    for (std::int64_t tile = tiles.count() - 1; tile >= 0; --tile) tiles.run(tile, product_, scratch.data(), epilogue);
  }

  double exact(std::int64_t i, std::int64_t j) const {
    const Product& p = product_;
    double sum = 0;
    for (std::int64_t l = 0; l < p.k; ++l) {
      sum += double{p.a[p.transpose_a ? l * p.lda + i : i * p.lda + l]} *
             double{p.b[p.transpose_b ? j * p.ldb + l : l * p.ldb + j]};
    }
    const double before = before_[static_cast<std::size_t>(i * p.ldd + j)];
    return double{p.alpha} * sum + double{p.beta} * before;
  }

 private:
  static constexpr std::int64_t kGap = 3;
  static std::vector<float> matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
    return numbers((rows - 1) * (columns + kGap) + columns, seed);
  }
  std::vector<float> a_, b_, d_, before_;
  Product product_;
};

/// The instruction sets that have loops for products.
std::vector<const Loops*> product_loops() {
  std::vector<const Loops*> loops = all_loops();
  std::erase_if(loops, [](const Loops* one) { return one->product.rows == 0; });
  return loops;
}

class PackedProducts : public testing::TestWithParam<const Loops*> {
 protected:
  const Loops& loops_ = *GetParam();
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PackedProducts);

TEST_P(PackedProducts, AreRightAtAnySize) {
  const auto check = [&](const Shape3& size, bool ta, bool tb, float alpha, float beta) {
    Case one(size, ta, tb, alpha, beta);
    one.run(loops_);
    const double tolerance = 2e-6 * std::sqrt(static_cast<double>(size.k)) + 1e-6;
    const std::int64_t row_step = size.m > 100 ? 7 : 1, column_step = size.n > 100 ? 11 : 1;
    for (std::int64_t i = 0; i < size.m; i += row_step) {
      for (std::int64_t j = 0; j < size.n; j += column_step) {
        ASSERT_NEAR(one.d()[static_cast<std::size_t>(i * one.product().ldd + j)], one.exact(i, j), tolerance)
            << size.m << "x" << size.n << "x" << size.k << (ta ? " ta" : "") << (tb ? " tb" : "") << " alpha " << alpha
            << " beta " << beta << " at " << i << ", " << j;
      }
    }
  };
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const std::int64_t m : {1, 5, 14, 29})
        for (const std::int64_t n : {1, 15, 16, 33, 71})
          for (const std::int64_t k : {1, 7, 16, 35}) check({m, n, k}, ta, tb, 1, 0);
      check({37, 45, 385}, ta, tb, 0.5f, 1);
      check({71, 50, 1000}, ta, tb, 1, 1);
      check({17, 97, 33}, ta, tb, -2, 0.25f);
      check({1031, 801, 17}, ta, tb, 1, 0); // several tiles
    }
  }
}

TEST_P(PackedProducts, LeaveWhatLiesBetweenRowsAsItWas) {
  Case one({30, 35, 20}, false, true, 1, 1);
  const std::vector<float> before = one.d();
  one.run(loops_);
  for (std::int64_t i = 0; i + 1 < one.product().m; ++i) {
    for (std::int64_t j = one.product().n; j < one.product().ldd; ++j) {
      const auto at = static_cast<std::size_t>(i * one.product().ldd + j);
      EXPECT_EQ(one.d()[at], before[at]) << i << " " << j;
    }
  }
}

/// The bits of an element depend on its row of a, its column of b, and nothing else: not on the tile, which the number
/// of threads determines, and not on the rows and columns beside it.
TEST_P(PackedProducts, OfAnElementHaveTheSameBitsInAnyTile) {
  const auto check = [&](bool ta, float alpha, float beta) {
    Case whole({210, 150, 500}, ta, !ta, alpha, beta);
    const std::vector<float> before = whole.d();
    whole.run(loops_);
    for (const int threads : {2, 3, 4, 7}) {
      Case again({210, 150, 500}, ta, !ta, alpha, beta);
      again.run(loops_, threads);
      const Product& p = again.product();
      for (std::int64_t i = 0; i < p.m; ++i) {
        const std::int64_t row = i * p.ldd;
        ASSERT_EQ(std::memcmp(whole.d().data() + row, again.d().data() + row, 150 * sizeof(float)), 0) << threads;
      }
    }
    for (const auto& [row, column] : {std::pair{1, 0}, {13, 17}, {100, 64}}) {
      Case part({210, 150, 500}, ta, !ta, alpha, beta);
      Product p = part.product();
      std::vector<float> d(static_cast<std::size_t>(64 * 40));
      for (std::int64_t i = 0; i < 64; ++i)
        std::copy_n(before.data() + (row + i) * whole.product().ldd + column, 40, d.data() + i * 40);
      p.a += ta ? row : row * p.lda;
      p.b += ta ? column : column * p.ldb; // b is transposed if a is not
      p.d = d.data();
      p.ldd = p.n = 40;
      p.m = 64;
      const PackedTiles tiles(p, loops_, 1);
      std::vector<float> scratch(static_cast<std::size_t>(tiles.scratch_floats()));
      tiles.run(0, p, scratch.data(), {});
      for (std::int64_t i = 0; i < 64; ++i) {
        const float* expected = whole.d().data() + (row + i) * whole.product().ldd + column;
        ASSERT_EQ(std::memcmp(expected, d.data() + i * 40, 40 * sizeof(float)), 0) << row << " " << column << " " << i;
      }
    }
  };
  for (const bool ta : {false, true}) {
    check(ta, 1, 0);
    check(ta, 0.5f, 1);
    check(ta, -2, 0.25f);
  }
}

/// An epilogue gives the bits of the separate operations.
TEST_P(PackedProducts, WithAnEpilogueAreThoseOfSeparateLoops) {
  const std::int64_t m = 45, n = 75;
  const std::vector<float> bias = numbers(n, 5), before = numbers(m * (n + 3), 6);
  Case plain({m, n, 400}, false, true), all({m, n, 400}, false, true), gradient({m, n, 400}, false, false),
      gradient_plain({m, n, 400}, false, false);
  std::vector<float> gelu(static_cast<std::size_t>(m * (n + 3)));
  plain.run(loops_);
  all.run(loops_, 1, {.bias = bias.data(), .gelu = gelu.data()});
  gradient_plain.run(loops_);
  gradient.run(loops_, 1, {.gelu_bwd = before.data()});
  for (std::int64_t i = 0; i < m; ++i) {
    const std::int64_t row = i * (n + 3);
    std::vector<float> y(static_cast<std::size_t>(n));
    loops_.bias_gelu(y.data(), plain.d().data() + row, bias.data(), n);
    EXPECT_EQ(std::memcmp(y.data(), gelu.data() + row, y.size() * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(plain.d().data() + row, all.d().data() + row, y.size() * sizeof(float)), 0);
    float* dx = gradient_plain.d().data() + row;
    loops_.gelu_bwd(dx, dx, before.data() + row, n);
    EXPECT_EQ(std::memcmp(dx, gradient.d().data() + row, y.size() * sizeof(float)), 0);
  }
}

TEST_P(PackedProducts, PropagateNanAndInfinity) {
  Case one({40, 40, 40}, false, false);
  const Product& p = one.product();
  const_cast<float*>(p.a)[3 * p.lda + 5] = kNan;                                   // NOLINT: the case owns it
  const_cast<float*>(p.b)[7 * p.ldb + 2] = std::numeric_limits<float>::infinity(); // NOLINT
  one.run(loops_);
  EXPECT_TRUE(std::isnan(one.d()[static_cast<std::size_t>(3 * p.ldd + 39)]));
  EXPECT_TRUE(std::isinf(one.d()[static_cast<std::size_t>(39 * p.ldd + 2)]));
  EXPECT_TRUE(std::isfinite(one.d()[static_cast<std::size_t>(39 * p.ldd + 39)]));
}

TEST(PackedTiles, LeaveSmallProductsAndLargeOnesInRowsToOneDnn) {
  for (const Loops* loops : product_loops()) {
    EXPECT_TRUE(PackedTiles::serves(Case({128, 128, 8}, false, false).product(), *loops));
    EXPECT_FALSE(PackedTiles::serves(Case({127, 512, 64}, false, false).product(), *loops));
    EXPECT_FALSE(PackedTiles::serves(Case({512, 127, 64}, false, false).product(), *loops));
    EXPECT_FALSE(PackedTiles::serves(Case({2300, 1100, 1}, false, true).product(), *loops));
    EXPECT_TRUE(PackedTiles::serves(Case({2300, 1100, 1}, true, false).product(), *loops));
  }
}

/// A tile is small enough that transports are polled, also if the inner dimension is long.
TEST(PackedTiles, AreAsManyAsThreadsNeed) {
  for (const Loops* loops : product_loops()) {
    for (const Shape3& size : {Shape3{256, 384, 384}, {2048, 768, 768}, {768, 3072, 2048}, {2048, 768, 65536}}) {
      const Product p{.d = nullptr,
                      .a = nullptr,
                      .b = nullptr,
                      .ldd = size.n,
                      .lda = size.k,
                      .ldb = size.n,
                      .m = size.m,
                      .n = size.n,
                      .k = size.k};
      for (const int threads : {1, 2, 4, 16}) {
        const PackedTiles tiles(p, *loops, threads);
        EXPECT_GE(tiles.count(), std::min<std::int64_t>(threads, 8)) << size.m << " " << size.n << " " << threads;
        EXPECT_LE(size.m * size.n * size.k / tiles.count(), std::int64_t{2048} * 768 * 768) << size.k << " " << threads;
        EXPECT_LE(tiles.scratch_floats(), (loops->product.max_columns + loops->product.group_rows) * 384);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedProducts, testing::ValuesIn(product_loops()),
                         [](const auto& loops) { return std::string(loops.param->name); });

} // namespace
} // namespace triax::kernels_cpu
