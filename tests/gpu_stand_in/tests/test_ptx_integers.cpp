// SPDX-License-Identifier: Apache-2.0
// Integer instructions of the interpreter, each type against plain C++ on wide integers.
#include <functional>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

__extension__ using Wide = __int128;
__extension__ using Unsigned128 = unsigned __int128;

struct Integer {
  std::string name;
  int bits;
  bool is_signed;
  std::string reg() const { return "b" + std::to_string(bits); }
  Wide value(std::uint64_t word) const {
    const std::uint64_t low = bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
    return is_signed && (low >> (bits - 1) & 1) ? Wide{low} - (Wide{1} << bits) : Wide{low};
  }
  std::uint64_t word(Wide x) const {
    const auto low = static_cast<std::uint64_t>(x);
    return bits == 64 ? low : low & ((std::uint64_t{1} << bits) - 1);
  }
};

const std::vector<Integer>& integers() {
  static const std::vector<Integer> types = {{"s16", 16, true},  {"u16", 16, false}, {"s32", 32, true},
                                             {"u32", 32, false}, {"s64", 64, true},  {"u64", 64, false}};
  return types;
}

// Pairs of edge values, and a third operand.
std::vector<Row> rows_of(const Integer& t) {
  const std::uint64_t top = std::uint64_t{1} << (t.bits - 1);
  const std::uint64_t edges[] = {
      0, 1, 2, 3, 7, 31, top - 1, top, top + 1, t.word(-1), t.word(-2), t.word(-7), t.word(0x123456789ABCDEF0)};
  std::vector<Row> rows;
  for (const auto a : edges)
    for (const auto b : edges) rows.push_back({a, b, t.word(Wide{a} * 3 + b), 0});
  return rows;
}

using Reference = std::function<Wide(const Integer&, Wide, Wide, Wide)>;

void check(const std::string& opcode, int operands, const Reference& reference, bool only_signed = false) {
  for (const Integer& t : integers()) {
    if (only_signed && !t.is_signed) continue;
    std::string text = opcode + "." + t.name + " $d";
    for (int n = 1; n <= operands; ++n) text += ", $" + std::to_string(n);
    const auto rows = rows_of(t);
    const auto got = evaluate(text, t.reg(), std::vector<std::string>(operands, t.reg()), rows);
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const Wide expected = reference(t, t.value(rows[n][0]), t.value(rows[n][1]), t.value(rows[n][2]));
      EXPECT_EQ(got[n], t.word(expected)) << text << " of " << rows[n][0] << ", " << rows[n][1] << ", " << rows[n][2];
    }
  }
}

} // namespace

TEST(PtxIntegers, Add) {
  check("add", 2, [](auto&, Wide a, Wide b, Wide) { return a + b; });
}
TEST(PtxIntegers, Sub) {
  check("sub", 2, [](auto&, Wide a, Wide b, Wide) { return a - b; });
}
TEST(PtxIntegers, MulLo) {
  check("mul.lo", 2,
        [](auto&, Wide a, Wide b, Wide) { return Wide(static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b)); });
}
TEST(PtxIntegers, MulHi) {
  check("mul.hi", 2, [](const Integer& t, Wide a, Wide b, Wide) {
    return t.is_signed ? Wide(a * b) >> t.bits
                       : Wide(static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b) >> t.bits);
  });
}
TEST(PtxIntegers, MadLo) {
  check("mad.lo", 3, [](auto&, Wide a, Wide b, Wide c) {
    return Wide(static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b) + static_cast<Unsigned128>(c));
  });
}
TEST(PtxIntegers, MadHi) {
  check("mad.hi", 3, [](const Integer& t, Wide a, Wide b, Wide c) {
    return (t.is_signed ? Wide(a * b) >> t.bits
                        : Wide(static_cast<Unsigned128>(a) * static_cast<Unsigned128>(b) >> t.bits)) +
           c;
  });
}
TEST(PtxIntegers, Min) {
  check("min", 2, [](auto&, Wide a, Wide b, Wide) { return a < b ? a : b; });
}
TEST(PtxIntegers, Max) {
  check("max", 2, [](auto&, Wide a, Wide b, Wide) { return a > b ? a : b; });
}
// Division by zero gives all ones, and the remainder of it the dividend.
TEST(PtxIntegers, Div) {
  check("div", 2, [](auto&, Wide a, Wide b, Wide) { return b == 0 ? Wide{-1} : a / b; });
}
TEST(PtxIntegers, Rem) {
  check("rem", 2, [](auto&, Wide a, Wide b, Wide) { return b == 0 ? a : a % b; });
}
TEST(PtxIntegers, Abs) {
  check(
      "abs", 1, [](auto&, Wide a, Wide, Wide) { return a < 0 ? -a : a; }, true);
}
TEST(PtxIntegers, Neg) {
  check(
      "neg", 1, [](auto&, Wide a, Wide, Wide) { return -a; }, true);
}

TEST(PtxIntegers, MulAndMadWide) {
  for (const Integer& t : integers()) {
    if (t.bits == 64) continue;
    const Integer wide{"", 2 * t.bits, t.is_signed};
    const auto rows = rows_of(t);
    const auto products = evaluate("mul.wide." + t.name + " $d, $1, $2", wide.reg(), {t.reg(), t.reg()}, rows);
    const auto sums =
        evaluate("mad.wide." + t.name + " $d, $1, $2, $3", wide.reg(), {t.reg(), t.reg(), wide.reg()}, rows);
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const Wide product = t.value(rows[n][0]) * t.value(rows[n][1]);
      EXPECT_EQ(products[n], wide.word(product)) << t.name << n;
      EXPECT_EQ(sums[n], wide.word(product + rows[n][2])) << t.name << n;
    }
  }
}

TEST(PtxIntegers, SaturatedSums) {
  const std::vector<Row> rows = {
      {0x7FFFFFFF, 1, 0, 0}, {0x80000000, 0xFFFFFFFF, 0, 0}, {5, 0xFFFFFFFD, 0, 0}, {0x80000000, 1, 0, 0}};
  EXPECT_EQ(evaluate("add.sat.s32 $d, $1, $2", "b32", {"b32", "b32"}, rows),
            (std::vector<std::uint64_t>{0x7FFFFFFF, 0x80000000, 2, 0x80000001}));
  EXPECT_EQ(evaluate("sub.sat.s32 $d, $1, $2", "b32", {"b32", "b32"}, rows),
            (std::vector<std::uint64_t>{0x7FFFFFFE, 0x80000001, 8, 0x80000000}));
}

// A sum of 128 bits from parts of 32.
TEST(PtxIntegers, CarriesOfAdditions) {
  const std::vector<Row> rows = {{0xFFFFFFFFFFFFFFFF, 1, 0, 0},
                                 {0xFFFFFFFF, 1, 0, 0},
                                 {0x123456789, 0xFEDCBA987, 0, 0},
                                 {0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0, 0}};
  const std::string unpack = "{ .reg .b32 %al, %ah, %bl, %bh, %l, %h; mov.b64 {%al, %ah}, $1; mov.b64 {%bl, %bh}, $2; ";
  const auto sums = evaluate(unpack + "add.cc.u32 %l, %al, %bl; addc.u32 %h, %ah, %bh; mov.b64 $d, {%l, %h}; }", "b64",
                             {"b64", "b64"}, rows);
  const auto differences = evaluate(unpack + "sub.cc.u32 %l, %al, %bl; subc.u32 %h, %ah, %bh; mov.b64 $d, {%l, %h}; }",
                                    "b64", {"b64", "b64"}, rows);
  const auto chained =
      evaluate(unpack + "add.cc.u32 %l, %al, %bl; addc.cc.u32 %h, %ah, %bh; addc.u32 %h, 0, 0; mov.b64 $d, {%h, %h}; }",
               "b64", {"b64", "b64"}, rows);
  const auto borrows =
      evaluate(unpack + "sub.cc.u32 %l, %al, %bl; subc.cc.u32 %h, %ah, %bh; subc.u32 %h, 0, 0; mov.b64 $d, {%h, %h}; }",
               "b64", {"b64", "b64"}, rows);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    EXPECT_EQ(borrows[n] & 0xFFFFFFFF, rows[n][0] < rows[n][1] ? 0xFFFFFFFF : 0u);
    EXPECT_EQ(sums[n], rows[n][0] + rows[n][1]);
    EXPECT_EQ(differences[n], rows[n][0] - rows[n][1]);
    EXPECT_EQ(chained[n] & 0xFFFFFFFF, rows[n][0] + rows[n][1] < rows[n][0] ? 1u : 0u);
  }
}

TEST(PtxIntegers, CarriesOfProducts) {
  const std::vector<Row> rows = {{0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0}, {3, 4, 5, 0}, {0x80000000, 2, 0xFFFFFFFF, 0}};
  const auto got =
      evaluate("{ .reg .b32 %l, %h; mad.lo.cc.u32 %l, $1, $2, $3; madc.hi.u32 %h, $1, $2, $3; mov.b64 $d, {%l, %h}; }",
               "b64", {"b32", "b32", "b32"}, rows);
  const auto low = evaluate(
      "{ .reg .b32 %l, %h; mad.lo.cc.u32 %l, $1, $2, $3; madc.lo.cc.u32 %h, $1, $2, $3; mov.b64 $d, {%l, %h}; }", "b64",
      {"b32", "b32", "b32"}, rows);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    EXPECT_EQ(got[n], rows[n][0] * rows[n][1] + (rows[n][2] << 32) + rows[n][2]);
    const std::uint64_t sum = (rows[n][0] * rows[n][1] & 0xFFFFFFFF) + rows[n][2];
    EXPECT_EQ(low[n] & 0xFFFFFFFF, sum & 0xFFFFFFFF);
    EXPECT_EQ(low[n] >> 32, (sum + (sum >> 32)) & 0xFFFFFFFF);
  }
}

} // namespace triax::test
