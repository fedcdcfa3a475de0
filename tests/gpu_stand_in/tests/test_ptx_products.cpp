// SPDX-License-Identifier: Apache-2.0
// Products of matrices: d = c + a b, with a of 16 x 16 and b of 16 x 8 elements.
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Elements of a and b are bits of f16 or bf16.
struct Product {
  bool brain = false;
  std::uint16_t a[16][16] = {}, b[16][8] = {};
  float c[16][8] = {};

  // The value of an element, which is finite.
  double value(std::uint16_t x) const {
    const int fraction = brain ? 7 : 10, bias = brain ? 127 : 15, exponent = (x & 0x7FFF) >> fraction;
    const int mantissa = x & ((1 << fraction) - 1);
    const double size = exponent == 0 ? std::ldexp(mantissa, 1 - bias - fraction)
                                      : std::ldexp(mantissa + (1 << fraction), exponent - bias - fraction);
    return x & 0x8000 ? -size : size;
  }
  // The element that has this value, which it can have exactly.
  std::uint16_t element(int x) const {
    for (std::uint32_t n = 0; n < 0x10000; ++n)
      if ((n >> 7 & 0xFF) != 0xFF && value(static_cast<std::uint16_t>(n)) == x) return static_cast<std::uint16_t>(n);
    ADD_FAILURE() << x;
    return 0;
  }
};

struct Result {
  float d[16][8];
};

Result multiply(const Product& p) {
  std::vector<std::uint32_t> in;
  for (int l = 0; l < 32; ++l) {
    const int g = l / 4, t = l % 4 * 2;
    auto pair = [](std::uint16_t low, std::uint16_t high) { return low | static_cast<std::uint32_t>(high) << 16; };
    for (int r = 0; r < 4; ++r) {
      const int row = g + r % 2 * 8, k = t + r / 2 * 8;
      in.push_back(pair(p.a[row][k], p.a[row][k + 1]));
    }
    for (int r = 0; r < 2; ++r) in.push_back(pair(p.b[t + 8 * r][g], p.b[t + 8 * r + 1][g]));
    for (int r = 0; r < 4; ++r) in.push_back(static_cast<std::uint32_t>(bits(p.c[g + r / 2 * 8][t + r % 2])));
    in.insert(in.end(), {0, 0});
  }
  const std::string type = p.brain ? "bf16" : "f16";
  Machine m(
      warp_kernel("mul.wide.u32 %x1, %t, 48;\nadd.s64 %x1, %in, %x1;\nld.global.v4.u32 {%r0, %r1, %r2, %r3}, "
                  "[%x1];\nld.global.v2.u32 {%r4, %r5}, [%x1+16];\n"
                  "ld.global.v2.f32 {%f0, %f1}, [%x1+24];\nld.global.v2.f32 {%f2, %f3}, [%x1+32];\n"
                  "mma.sync.aligned.m16n8k16.row.col.f32." +
                  type + "." + type +
                  ".f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};\n"
                  "mul.wide.u32 %x2, %t, 16;\nld.param.u64 %out, [result];\nadd.s64 %out, %out, %x2;\nst.global.v4.f32 "
                  "[%out], {%f0, %f1, %f2, %f3};"));
  const auto from = m.buffer(in), out = m.unwritten(512);
  EXPECT_EQ(m.error_of("k", {1}, {32}, {from, out}), "");
  EXPECT_EQ(m.counts.mma, 1u);
  const auto got = m.read<float>(out, 128);
  Result result{};
  for (int l = 0; l < 32; ++l)
    for (int r = 0; r < 4; ++r) result.d[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2] = got[l * 4 + r];
  return result;
}

void fill(Product& p, const std::function<std::uint16_t()>& element) {
  for (auto& row : p.a)
    for (std::uint16_t& x : row) x = element();
  for (auto& row : p.b)
    for (std::uint16_t& x : row) x = element();
}

} // namespace

// Small integers are exact in any order.
TEST(PtxProducts, OfIntegers) {
  for (const bool brain : {false, true}) {
    std::mt19937 random(7);
    Product p{.brain = brain};
    std::uint16_t integers[17];
    for (int n = 0; n < 17; ++n) integers[n] = p.element(n - 8);
    fill(p, [&] { return integers[random() % 17]; });
    for (auto& row : p.c)
      for (float& x : row) x = static_cast<float>(random() % 100);
    const Result got = multiply(p);
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        double expected = p.c[row][column];
        for (int k = 0; k < 16; ++k) expected += p.value(p.a[row][k]) * p.value(p.b[k][column]);
        EXPECT_EQ(got.d[row][column], static_cast<float>(expected)) << brain << row << " " << column;
      }
    }
  }
}

// PTX does not say how sums round. Each of 16 additions may lose two units in the last place of the sum of all sizes.
TEST(PtxProducts, OfValuesThatRound) {
  for (const bool brain : {false, true}) {
    std::mt19937 random(9);
    Product p{.brain = brain};
    const unsigned fraction = brain ? 7 : 10, one = brain ? 127 : 15; // exponents of 2^-4 to 2^3
    fill(p, [&] {
      const unsigned exponent = one - 4 + random() % 8, sign = random() % 2;
      return static_cast<std::uint16_t>(sign << 15 | exponent << fraction | random() % (1u << fraction));
    });
    for (auto& row : p.c)
      for (float& x : row) x = 1.0f / static_cast<float>(random() % 100 + 3);
    const Result got = multiply(p);
    int rounded = 0;
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        double exact = p.c[row][column], sizes = std::abs(exact);
        for (int k = 0; k < 16; ++k) {
          exact += p.value(p.a[row][k]) * p.value(p.b[k][column]);
          sizes += std::abs(p.value(p.a[row][k]) * p.value(p.b[k][column]));
        }
        EXPECT_NEAR(got.d[row][column], exact, 16 * std::ldexp(sizes, -22)) << brain << row << " " << column;
        rounded += got.d[row][column] != exact;
      }
    }
    EXPECT_GT(rounded, 64);
  }
}

TEST(PtxProducts, OfInfinities) {
  for (const bool brain : {false, true}) {
    Product p{.brain = brain};
    const std::uint16_t inf = brain ? 0x7F80 : 0x7C00, minus_inf = inf | 0x8000, one = p.element(1);
    for (int column = 0; column < 8; ++column) p.b[0][column] = p.b[1][column] = one;
    p.b[0][7] = 0;
    p.a[0][0] = inf;
    p.a[1][0] = minus_inf;
    p.a[2][0] = inf, p.a[2][1] = minus_inf;
    p.a[3][0] = one, p.c[3][0] = kInf;
    p.a[4][0] = inf, p.c[4][0] = -kInf;
    const Result got = multiply(p);
    EXPECT_EQ(got.d[0][0], kInf);
    EXPECT_TRUE(std::isnan(got.d[0][7])) << "infinity times zero";
    EXPECT_EQ(got.d[1][0], -kInf);
    EXPECT_TRUE(std::isnan(got.d[2][0]));
    EXPECT_EQ(got.d[3][0], kInf);
    EXPECT_EQ(got.d[3][1], 1);
    EXPECT_TRUE(std::isnan(got.d[4][0]));
    EXPECT_EQ(got.d[4][1], kInf);
    EXPECT_EQ(got.d[5][0], 0);
  }
}

TEST(PtxProducts, OfSubnormalNumbers) {
  Product p;
  const std::uint16_t least = 1, most = 0x3FF, one = p.element(1); // 2^-24, 1023 times that
  p.b[0][0] = one, p.b[0][1] = least, p.b[0][2] = most;
  p.a[0][0] = least, p.a[1][0] = most, p.a[2][0] = least | 0x8000, p.a[3][0] = one;
  const Result got = multiply(p);
  const int factors[] = {1, 1023, -1};
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(got.d[row][0], std::ldexp(factors[row], -24));
    EXPECT_EQ(got.d[row][1], std::ldexp(factors[row], -48));
    EXPECT_EQ(got.d[row][2], std::ldexp(factors[row] * 1023, -48));
  }
  EXPECT_EQ(got.d[3][1], std::ldexp(1, -24));
}

} // namespace triax::test
