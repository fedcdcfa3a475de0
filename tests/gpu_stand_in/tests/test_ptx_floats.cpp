// SPDX-License-Identifier: Apache-2.0
// Floating-point instructions of the interpreter.
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using Bits = std::vector<std::uint64_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr std::uint64_t kCanonicalNan = 0x7FFFFFFF;

const std::vector<float>& edges() {
  static const std::vector<float> values = {0.0f,   -0.0f,  1.0f,  -1.0f,       1.0f / 3, 3.1415927f,
                                            -7.25f, 1e-38f, kTiny, -kTiny,      3.4e38f,  -3.4e38f,
                                            kInf,   -kInf,  kNan,  16777215.0f, 1e-20f};
  return values;
}

// Equal bits, or both NaN.
void expect_same(std::uint64_t got, float expected, const std::string& what) {
  if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(got)))) << what;
  else
    EXPECT_EQ(got, bits(expected)) << what;
}
void expect_same(std::uint64_t got, double expected, const std::string& what) {
  if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(std::bit_cast<double>(got))) << what;
  else
    EXPECT_EQ(got, bits(expected)) << what;
}

// The reference runs in the rounding mode `mode`.
template <class T>
void check(const std::string& opcode, int operands, const std::function<T(T, T, T)>& reference,
           int mode = FE_TONEAREST) {
  std::vector<Row> rows;
  std::vector<std::array<T, 3>> values;
  for (const float a : edges())
    for (const float b : edges()) {
      const std::array<T, 3> v = {static_cast<T>(a), static_cast<T>(b),
                                  static_cast<T>(b == 1.0f ? -1.0f / 3 : a * 0.37f)};
      values.push_back(v);
      rows.push_back({bits(v[0]), bits(v[1]), bits(v[2]), 0});
    }
  const std::string reg = sizeof(T) == 4 ? "f32" : "f64";
  std::string text = opcode + " $d";
  for (int n = 1; n <= operands; ++n) text += ", $" + std::to_string(n);
  const auto got = evaluate(text, reg, std::vector<std::string>(operands, reg), rows);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    std::fesetround(mode);
    volatile T a = values[n][0], b = values[n][1], c = values[n][2];
    const volatile T expected = reference(a, b, c);
    std::fesetround(FE_TONEAREST);
    expect_same(got[n], static_cast<T>(expected),
                text + " of " + std::to_string(a) + ", " + std::to_string(b) + ", " + std::to_string(c));
  }
}

const struct {
  std::string name;
  int mode;
} kModes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <class T>
void check_modes(const std::string& op, const std::string& type, int operands,
                 const std::function<T(T, T, T)>& reference) {
  for (const auto& m : kModes) check<T>(op + "." + m.name + "." + type, operands, reference, m.mode);
}

template <class T>
void check_arithmetic(const std::string& type) {
  check_modes<T>("add", type, 2, [](T a, T b, T) { return a + b; });
  check_modes<T>("sub", type, 2, [](T a, T b, T) { return a - b; });
  check_modes<T>("mul", type, 2, [](T a, T b, T) { return a * b; });
  check_modes<T>("div", type, 2, [](T a, T b, T) { return a / b; });
  check_modes<T>("fma", type, 3, [](T a, T b, T c) { return std::fma(a, b, c); });
  check_modes<T>("sqrt", type, 1, [](T a, T, T) { return std::sqrt(a); });
  check_modes<T>("rcp", type, 1, [](T a, T, T) { return 1 / a; });
}

float value_of(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

} // namespace

TEST(PtxFloats, ArithmeticOfF32InAllModes) {
  check_arithmetic<float>("f32");
}
TEST(PtxFloats, ArithmeticOfF64InAllModes) {
  check_arithmetic<double>("f64");
}

TEST(PtxFloats, WithoutAModeRoundsToNearest) {
  check<float>("add.f32", 2, [](float a, float b, float) { return a + b; });
  check<float>("sub.f32", 2, [](float a, float b, float) { return a - b; });
  check<float>("mul.f32", 2, [](float a, float b, float) { return a * b; });
  check<double>("add.f64", 2, [](double a, double b, double) { return a + b; });
  check<double>("sub.f64", 2, [](double a, double b, double) { return a - b; });
  check<double>("mul.f64", 2, [](double a, double b, double) { return a * b; });
}

TEST(PtxFloats, FtzFlushesOperandsAndResults) {
  check<float>("add.ftz.f32", 2, [](float a, float b, float) { return flushed(flushed(a) + flushed(b)); });
  check<float>("mul.ftz.f32", 2, [](float a, float b, float) { return flushed(flushed(a) * flushed(b)); });
  check<float>("fma.rn.ftz.f32", 3,
               [](float a, float b, float c) { return flushed(std::fma(flushed(a), flushed(b), flushed(c))); });
  check<float>("sub.ftz.f32", 2, [](float a, float b, float) { return flushed(flushed(a) - flushed(b)); });
  check<float>("div.rn.ftz.f32", 2, [](float a, float b, float) { return flushed(flushed(a) / flushed(b)); });
  check_modes<float>("sqrt", "ftz.f32", 1, [](float a, float, float) { return std::sqrt(flushed(a)); });
  check_modes<float>("rcp", "ftz.f32", 1, [](float a, float, float) { return flushed(1 / flushed(a)); });
  const std::vector<Row> rows = {{bits(kTiny), bits(1.0f), 0, 0}, {bits(-kTiny), bits(-1.0f), 0, 0}};
  EXPECT_EQ(evaluate("min.ftz.f32 $d, $1, $2", "f32", {"f32", "f32"}, rows), (Bits{0, bits(-1.0f)}));
  EXPECT_EQ(evaluate("max.ftz.f32 $d, $1, $2", "f32", {"f32", "f32"}, rows), (Bits{bits(1.0f), bits(-0.0f)}));
}

TEST(PtxFloats, SatClampsToOneAndNanToZero) {
  auto clamped = [](float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; };
  check<float>("add.sat.f32", 2, [=](float a, float b, float) { return clamped(a + b); });
  check<float>("sub.sat.f32", 2, [=](float a, float b, float) { return clamped(a - b); });
  check<float>("mul.sat.f32", 2, [=](float a, float b, float) { return clamped(a * b); });
  check<float>("fma.rn.sat.f32", 3, [=](float a, float b, float c) { return clamped(std::fma(a, b, c)); });
}

TEST(PtxFloats, MinAndMaxPreferNumbersAndOrderZeros) {
  const std::vector<Row> rows = {{bits(1.0f), bits(2.0f), 0, 0},  {bits(kNan), bits(2.0f), 0, 0},
                                 {bits(2.0f), bits(kNan), 0, 0},  {bits(kNan), bits(kNan), 0, 0},
                                 {bits(0.0f), bits(-0.0f), 0, 0}, {bits(-0.0f), bits(0.0f), 0, 0},
                                 {bits(-kInf), bits(kInf), 0, 0}};
  EXPECT_EQ(evaluate("min.f32 $d, $1, $2", "f32", {"f32", "f32"}, rows),
            (Bits{bits(1.0f), bits(2.0f), bits(2.0f), kCanonicalNan, bits(-0.0f), bits(-0.0f), bits(-kInf)}));
  EXPECT_EQ(evaluate("max.f32 $d, $1, $2", "f32", {"f32", "f32"}, rows),
            (Bits{bits(2.0f), bits(2.0f), bits(2.0f), kCanonicalNan, bits(0.0f), bits(0.0f), bits(kInf)}));
  const std::vector<Row> wide = {{bits(0.0), bits(-0.0), 0, 0}, {bits(1.0), bits(std::nan("")), 0, 0}};
  EXPECT_EQ(evaluate("min.f64 $d, $1, $2", "f64", {"f64", "f64"}, wide), (Bits{bits(-0.0), bits(1.0)}));
  EXPECT_EQ(evaluate("max.f64 $d, $1, $2", "f64", {"f64", "f64"}, wide), (Bits{bits(0.0), bits(1.0)}));
}

TEST(PtxFloats, SignsAreBits) {
  const std::vector<Row> rows = {
      {bits(-1.5f), bits(2.0f), 0, 0}, {bits(0.0f), bits(-2.0f), 0, 0}, {0xFFC00001, bits(3.0f), 0, 0}};
  EXPECT_EQ(evaluate("abs.f32 $d, $1", "f32", {"f32"}, rows), (Bits{bits(1.5f), 0, 0x7FC00001}));
  EXPECT_EQ(evaluate("neg.f32 $d, $1", "f32", {"f32"}, rows), (Bits{bits(1.5f), bits(-0.0f), 0x7FC00001}));
  EXPECT_EQ(evaluate("copysign.f32 $d, $1, $2", "f32", {"f32", "f32"}, rows),
            (Bits{bits(-2.0f), bits(2.0f), bits(-3.0f)}));
  const std::vector<Row> wide = {{bits(-1.5), bits(2.0), 0, 0}};
  EXPECT_EQ(evaluate("abs.f64 $d, $1", "f64", {"f64"}, wide), (Bits{bits(1.5)}));
  EXPECT_EQ(evaluate("neg.f64 $d, $1", "f64", {"f64"}, wide), (Bits{bits(1.5)}));
  EXPECT_EQ(evaluate("copysign.f64 $d, $1, $2", "f64", {"f64", "f64"}, wide), (Bits{bits(-2.0)}));
}

// PTX states bounds of these: 2 ulp in full range at most, or an absolute error near zeros.
TEST(PtxFloats, ApproximationsAreNear) {
  std::vector<Row> rows;
  for (const float x : {0.1f, 0.5f, 1.0f, 1.7f, 3.0f, 10.0f, 0.001f}) rows.push_back({bits(x), 0, 0, 0});
  const struct {
    std::string op;
    std::function<double(double)> f;
    bool can_flush = true;
  } functions[] = {
      {"ex2", [](double x) { return std::exp2(x); }},  {"lg2", [](double x) { return std::log2(x); }},
      {"rcp", [](double x) { return 1 / x; }},         {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }}, {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},   {"tanh", [](double x) { return std::tanh(x); }, false}};
  for (const auto& function : functions) {
    for (const std::string how : {".approx.f32", ".approx.ftz.f32"}) {
      if (!function.can_flush && how != ".approx.f32") continue;
      const auto got = evaluate(function.op + how + " $d, $1", "f32", {"f32"}, rows);
      for (std::size_t n = 0; n < rows.size(); ++n) {
        const double expected = function.f(value_of(rows[n][0]));
        EXPECT_NEAR(value_of(got[n]), expected, 2e-7 * std::abs(expected) + 1e-9) << function.op << how << n;
      }
    }
  }
  EXPECT_EQ(evaluate("ex2.approx.ftz.f32 $d, $1", "f32", {"f32"},
                     {{bits(-kInf), 0, 0, 0}, {bits(-130.0f), 0, 0, 0}, {bits(kInf), 0, 0, 0}}),
            (Bits{0, 0, bits(kInf)}));
}

TEST(PtxFloats, ApproximationsKeepSubnormalNumbersWithoutFtz) {
  const float small = std::ldexp(1.0f, -130), large = std::ldexp(1.0f, 127);
  const struct {
    std::string op;
    float operand, result, flushed;
  } cases[] = {{"ex2", -130, small, 0},
               {"lg2", small, -130, -kInf},
               {"rcp", large, std::ldexp(1.0f, -127), 0},
               {"sqrt", small, std::ldexp(1.0f, -65), 0},
               {"rsqrt", small, std::ldexp(1.0f, 65), kInf},
               {"sin", -small, -small, -0.0f},
               {"cos", small, 1, 1}};
  for (const auto& each : cases) {
    const std::vector<Row> row = {{bits(each.operand), 0, 0, 0}};
    EXPECT_EQ(value_of(evaluate(each.op + ".approx.f32 $d, $1", "f32", {"f32"}, row)[0]), each.result) << each.op;
    EXPECT_EQ(evaluate(each.op + ".approx.ftz.f32 $d, $1", "f32", {"f32"}, row)[0], bits(each.flushed)) << each.op;
  }
}

TEST(PtxFloats, ApproximateQuotientsAreNear) {
  std::vector<Row> rows;
  for (const float x : {0.1f, 1.0f, -3.0f, 1e10f})
    for (const float y : {0.7f, -1.0f, 3.0f, 1e-10f}) rows.push_back({bits(x), bits(y), 0, 0});
  for (const std::string op : {"div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32"}) {
    const auto got = evaluate(op + " $d, $1, $2", "f32", {"f32", "f32"}, rows);
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const double expected = double{value_of(rows[n][0])} / double{value_of(rows[n][1])};
      EXPECT_NEAR(value_of(got[n]), expected, 2.4e-7 * std::abs(expected)) << op << n; // 2 ulp
    }
  }
}

TEST(PtxFloats, ReciprocalOfF64IsGross) {
  const auto got = evaluate("rcp.approx.ftz.f64 $d, $1", "f64", {"f64"},
                            {{bits(3.0), 0, 0, 0}, {bits(0.0), 0, 0, 0}, {bits(1e-310), 0, 0, 0}});
  EXPECT_EQ(got[0] & 0xFFFFFFFF, 0u);
  EXPECT_NEAR(std::bit_cast<double>(got[0]), 1.0 / 3, 1e-6);
  EXPECT_EQ(got[1], bits(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(got[2], bits(std::numeric_limits<double>::infinity()));
}

} // namespace triax::test
