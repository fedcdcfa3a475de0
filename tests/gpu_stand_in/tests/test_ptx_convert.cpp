// SPDX-License-Identifier: Apache-2.0
// cvt and mov of the interpreter.
#include <cmath>
#include <limits>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using Bits = std::vector<std::uint64_t>;

std::vector<Row> column(const Bits& values) {
  std::vector<Row> rows;
  for (const auto v : values) rows.push_back({v, 0, 0, 0});
  return rows;
}

Bits convert(const std::string& types, const std::string& result, const std::string& operand, const Bits& values) {
  return evaluate("cvt." + types + " $d, $1", result, {operand}, column(values));
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kInf64 = std::numeric_limits<double>::infinity();

} // namespace

TEST(PtxConvert, IntegersExtendAndKeepLowBits) {
  const Bits values = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF};
  Bits signed16, unsigned16, signed8, low8;
  for (const auto v : values) {
    signed16.push_back(static_cast<std::uint32_t>(static_cast<std::int16_t>(v)));
    unsigned16.push_back(v);
    signed8.push_back(static_cast<std::uint16_t>(static_cast<std::int8_t>(v)));
    low8.push_back(v & 0xFF);
  }
  EXPECT_EQ(convert("s32.s16", "b32", "b16", values), signed16);
  EXPECT_EQ(convert("u32.u16", "b32", "b16", values), unsigned16);
  EXPECT_EQ(convert("s16.s8", "b16", "b16", values), signed8);
  EXPECT_EQ(convert("u16.u8", "b16", "b16", values), low8);
  EXPECT_EQ(convert("u32.u64", "b32", "b64", {0x123456789ABCDEF0, ~0ull}), (Bits{0x9ABCDEF0, 0xFFFFFFFF}));
  EXPECT_EQ(convert("s64.s32", "b64", "b32", {0x80000000, 5}), (Bits{0xFFFFFFFF80000000, 5}));
  EXPECT_EQ(convert("u64.u32", "b64", "b32", {0x80000000, 5}), (Bits{0x80000000, 5}));
  EXPECT_EQ(convert("u16.u64", "b16", "b64", {0x123456789ABCDEF0}), (Bits{0xDEF0}));
  EXPECT_EQ(convert("u64.u16", "b64", "b16", {0xFFFF}), (Bits{0xFFFF}));
}

TEST(PtxConvert, RegistersMayBeWiderThanTypes) {
  EXPECT_EQ(convert("s64.s32", "b64", "b64", {0x1234567880000000, 0xFFFFFFFF00000005}), (Bits{0xFFFFFFFF80000000, 5}));
  EXPECT_EQ(convert("s32.s8", "b64", "b32", {0x80}), (Bits{0xFFFFFFFFFFFFFF80}));
  EXPECT_EQ(convert("u32.u16", "b64", "b64", {0xABCDEF1234567890}), (Bits{0x7890}));
}

TEST(PtxConvert, SaturatedIntegers) {
  EXPECT_EQ(convert("sat.u8.s32", "b32", "b32", {0xFFFFFFFF, 300, 7}), (Bits{0, 255, 7}));
  EXPECT_EQ(convert("sat.s16.s64", "b16", "b64", {0x100000, ~0ull - 0x100000, 7}), (Bits{0x7FFF, 0x8000, 7}));
  EXPECT_EQ(convert("sat.s32.u64", "b32", "b64", {~0ull, 7}), (Bits{0x7FFFFFFF, 7}));
}

TEST(PtxConvert, FloatsToIntegersRoundAndSaturate) {
  const Bits values = {bits(1.5f),  bits(2.5f), bits(-1.5f), bits(-0.25f), bits(3e9f),
                       bits(-3e9f), bits(kInf), bits(-kInf), bits(NAN)};
  EXPECT_EQ(convert("rni.s32.f32", "b32", "f32", values),
            (Bits{2, 2, 0xFFFFFFFE, 0, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000000, 0}));
  EXPECT_EQ(convert("rzi.s32.f32", "b32", "f32", values),
            (Bits{1, 2, 0xFFFFFFFF, 0, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000000, 0}));
  EXPECT_EQ(convert("rmi.s32.f32", "b32", "f32", values),
            (Bits{1, 2, 0xFFFFFFFE, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000000, 0}));
  EXPECT_EQ(convert("rpi.s32.f32", "b32", "f32", values),
            (Bits{2, 3, 0xFFFFFFFF, 0, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000000, 0}));
  EXPECT_EQ(convert("rzi.u32.f32", "b32", "f32", values), (Bits{1, 2, 0, 0, 3000000000, 0, 0xFFFFFFFF, 0, 0}));
  EXPECT_EQ(convert("rzi.u8.f32", "b32", "f32", {bits(255.9f), bits(256.0f), bits(-1.0f)}), (Bits{255, 255, 0}));
  EXPECT_EQ(convert("rzi.s64.f32", "b64", "f32", {bits(-5.5f), bits(1e30f), bits(NAN)}),
            (Bits{~0ull - 4, 0x7FFFFFFFFFFFFFFF, 1ull << 63}));
  EXPECT_EQ(convert("rzi.u64.f64", "b64", "f64", {bits(1e19), bits(-1.0), bits(2e19)}),
            (Bits{10000000000000000000ull, 0, ~0ull}));
  EXPECT_EQ(convert("rzi.s64.f64", "b64", "f64", {bits(-9.9), bits(9.3e18), bits(-kInf64)}),
            (Bits{~0ull - 8, 0x7FFFFFFFFFFFFFFF, 1ull << 63}));
  EXPECT_EQ(convert("rni.s32.f64", "b32", "f64", {bits(2.5), bits(3.5), bits(-1e20)}), (Bits{2, 4, 0x80000000}));
}

TEST(PtxConvert, IntegersToFloatsRound) {
  EXPECT_EQ(convert("rn.f32.s32", "f32", "b32", {16777217, 0xFFFFFFFF}), (Bits{bits(16777216.0f), bits(-1.0f)}));
  EXPECT_EQ(convert("rz.f32.u32", "f32", "b32", {0xFFFFFFFF}), (Bits{bits(4294967040.0f)}));
  EXPECT_EQ(convert("rp.f32.u32", "f32", "b32", {0xFFFFFF01}), (Bits{bits(4294967296.0f)}));
  EXPECT_EQ(convert("rn.f32.u64", "f32", "b64", {~0ull}), (Bits{bits(0x1p64f)}));
  EXPECT_EQ(convert("rn.f32.s64", "f32", "b64", {~0ull}), (Bits{bits(-1.0f)}));
  EXPECT_EQ(convert("rn.f64.s64", "f64", "b64", {(1ull << 53) + 1}), (Bits{bits(0x1p53)}));
  EXPECT_EQ(convert("rn.f64.u16", "f64", "b16", {0xFFFF}), (Bits{bits(65535.0)}));
  EXPECT_EQ(convert("rn.f64.s32", "f64", "b32", {0x80000000}), (Bits{bits(-2147483648.0)}));
}

TEST(PtxConvert, BetweenF32AndF64) {
  EXPECT_EQ(convert("f64.f32", "f64", "f32", {bits(1.5f), bits(1e-45f)}),
            (Bits{bits(1.5), bits(static_cast<double>(1e-45f))}));
  const double third = 1.0 / 3;
  const float near = static_cast<float>(third), below = std::nextafter(near, 0.0f);
  EXPECT_EQ(convert("rn.f32.f64", "f32", "f64", {bits(third), bits(-third)}), (Bits{bits(near), bits(-near)}));
  EXPECT_EQ(convert("rz.f32.f64", "f32", "f64", {bits(third), bits(-third)}), (Bits{bits(below), bits(-below)}));
  EXPECT_EQ(convert("rm.f32.f64", "f32", "f64", {bits(third), bits(-third)}), (Bits{bits(below), bits(-near)}));
  EXPECT_EQ(convert("rp.f32.f64", "f32", "f64", {bits(third), bits(-third)}), (Bits{bits(near), bits(-below)}));
}

TEST(PtxConvert, ToIntegralValuesAndSaturated) {
  const Bits values = {bits(0.5f), bits(1.5f), bits(-0.5f), bits(-2.7f), bits(NAN)};
  EXPECT_EQ(convert("rni.f32.f32", "f32", "f32", {values.begin(), values.end() - 1}),
            (Bits{bits(0.0f), bits(2.0f), bits(-0.0f), bits(-3.0f)}));
  EXPECT_EQ(convert("rzi.f32.f32", "f32", "f32", {values.begin(), values.end() - 1}),
            (Bits{bits(0.0f), bits(1.0f), bits(-0.0f), bits(-2.0f)}));
  EXPECT_EQ(convert("sat.f32.f32", "f32", "f32", values),
            (Bits{bits(0.5f), bits(1.0f), bits(0.0f), bits(0.0f), bits(0.0f)}));
  EXPECT_EQ(convert("rni.f64.f64", "f64", "f64", {bits(2.5), bits(-3.5)}), (Bits{bits(2.0), bits(-4.0)}));
  EXPECT_EQ(convert("rzi.f64.f64", "f64", "f64", {bits(2.9), bits(-3.5)}), (Bits{bits(2.0), bits(-3.0)}));
  EXPECT_EQ(convert("ftz.f32.f32", "f32", "f32", {bits(1e-40f), bits(-1e-40f)}), (Bits{bits(0.0f), bits(-0.0f)}));
}

// All 16-bit values: to f32 exactly, and back.
TEST(PtxConvert, HalvesRoundTrip) {
  for (int part = 0; part < 64; ++part) {
    Bits values;
    for (int n = 0; n < 1024; ++n) values.push_back(part * 1024 + n);
    const auto wide = convert("f32.f16", "f32", "b16", values);
    const auto back = convert("rn.f16.f32", "b16", "f32", wide);
    const auto wide_bf = convert("f32.bf16", "f32", "b16", values);
    const auto back_bf = convert("rn.bf16.f32", "b16", "f32", wide_bf);
    for (std::size_t n = 0; n < values.size(); ++n) {
      const std::uint64_t h = values[n], exponent = h >> 10 & 31, fraction = h & 1023;
      const double sign = h & 0x8000 ? -1 : 1;
      EXPECT_EQ(back[n], exponent == 31 && fraction ? 0x7FFFu : h);
      if (exponent == 31) {
        EXPECT_TRUE(fraction || wide[n] == bits(static_cast<float>(sign) * kInf));
      } else {
        const double value = exponent ? std::ldexp(1024.0 + fraction, static_cast<int>(exponent) - 25)
                                      : std::ldexp(static_cast<double>(fraction), -24);
        EXPECT_EQ(wide[n], bits(static_cast<float>(sign * value)));
      }
      EXPECT_EQ(wide_bf[n], h << 16);
      const bool nan = (h & 0x7FFF) > 0x7F80;
      EXPECT_EQ(back_bf[n], nan ? 0x7FFFu : h);
    }
  }
}

TEST(PtxConvert, HalvesRoundToNearestEvenAndToZero) {
  const float above = 1 + 0x1p-11f, odd = 1 + 3 * 0x1p-11f;
  EXPECT_EQ(
      convert("rn.f16.f32", "b16", "f32",
              {bits(above), bits(odd), bits(65519.0f), bits(65520.0f), bits(0x1p-25f), bits(0x1.8p-25f), bits(-kInf)}),
      (Bits{0x3C00, 0x3C02, 0x7BFF, 0x7C00, 0, 1, 0xFC00}));
  EXPECT_EQ(
      convert("rz.f16.f32", "b16", "f32", {bits(odd), bits(70000.0f), bits(-kInf), bits(0x1.8p-24f), bits(-0x1p-25f)}),
      (Bits{0x3C01, 0x7BFF, 0xFC00, 1, 0x8000}));
  const float bf_tie = std::bit_cast<float>(0x3F808000u), bf_odd = std::bit_cast<float>(0x3F818000u);
  EXPECT_EQ(convert("rn.bf16.f32", "b16", "f32", {bits(bf_tie), bits(bf_odd), bits(3.4028235e38f)}),
            (Bits{0x3F80, 0x3F82, 0x7F80}));
  EXPECT_EQ(convert("rz.bf16.f32", "b16", "f32", {bits(bf_odd), bits(3.4028235e38f)}), (Bits{0x3F81, 0x7F7F}));
  const std::vector<Row> pair = {{bits(1.0f), bits(2.0f), 0, 0}};
  EXPECT_EQ(evaluate("cvt.rn.f16x2.f32 $d, $1, $2", "b32", {"f32", "f32"}, pair)[0], 0x3C004000u);
  EXPECT_EQ(evaluate("cvt.rn.bf16x2.f32 $d, $1, $2", "b32", {"f32", "f32"}, pair)[0], 0x3F804000u);
}

TEST(PtxConvert, MovesPackAndUnpack) {
  const std::vector<Row> rows = {{0x1122334455667788, 0x99AABBCC, 0, 0}};
  EXPECT_EQ(evaluate("mov.b64 $d, $1", "b64", {"b64"}, rows)[0], rows[0][0]);
  EXPECT_EQ(evaluate("mov.u16 $d, $1", "b16", {"b16"}, rows)[0], 0x7788u);
  EXPECT_EQ(evaluate("mov.f32 $d, 0f3F800000", "f32", {}, rows)[0], bits(1.0f));
  EXPECT_EQ(evaluate("mov.f64 $d, 0d3FF0000000000000", "f64", {}, rows)[0], bits(1.0));
  EXPECT_EQ(evaluate("mov.u32 $d, WARP_SZ", "b32", {}, rows)[0], 32u);
  EXPECT_EQ(evaluate("{ .reg .b32 %x, %y; mov.b64 {%x, %y}, $1; mov.b64 $d, {%y, %x}; }", "b64", {"b64"}, rows)[0],
            0x5566778811223344u);
  EXPECT_EQ(evaluate("{ .reg .b16 %x, %y; mov.b32 {%x, %y}, $1; mov.b32 $d, {%y, %x}; }", "b32", {"b32"}, rows)[0],
            0x77885566u);
  EXPECT_EQ(evaluate("{ .reg .b32 %y; mov.b64 {_, %y}, $1; mov.b32 $d, %y; }", "b32", {"b64"}, rows)[0], 0x11223344u);
}

} // namespace triax::test
