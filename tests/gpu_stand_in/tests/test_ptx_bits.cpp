// SPDX-License-Identifier: Apache-2.0
// Bit instructions of the interpreter.
#include <bit>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using Bits = std::vector<std::uint64_t>;

const Bits kValues = {0,
                      1,
                      2,
                      0x80,
                      0x7FFF,
                      0x8000,
                      0xFFFF,
                      0x12345678,
                      0x7FFFFFFF,
                      0x80000000,
                      0xFFFFFFFF,
                      0x123456789ABCDEF0,
                      0x8000000000000000,
                      ~0ull};

std::uint64_t mask_of(int width) {
  return width == 64 ? ~0ull : (1ull << width) - 1;
}
std::int64_t sign_extended(std::uint64_t x, int width) {
  return static_cast<std::int64_t>(x << (64 - width)) >> (64 - width);
}

} // namespace

TEST(PtxBits, Logic) {
  for (const int width : {16, 32, 64}) {
    const std::string type = "b" + std::to_string(width);
    std::vector<Row> rows;
    for (const auto a : kValues)
      for (const auto b : kValues) rows.push_back({a & mask_of(width), b & mask_of(width), 0, 0});
    const auto all_and = evaluate("and." + type + " $d, $1, $2", type, {type, type}, rows);
    const auto all_or = evaluate("or." + type + " $d, $1, $2", type, {type, type}, rows);
    const auto all_xor = evaluate("xor." + type + " $d, $1, $2", type, {type, type}, rows);
    const auto all_not = evaluate("not." + type + " $d, $1", type, {type}, rows);
    for (std::size_t n = 0; n < rows.size(); ++n) {
      EXPECT_EQ(all_and[n], rows[n][0] & rows[n][1]);
      EXPECT_EQ(all_or[n], rows[n][0] | rows[n][1]);
      EXPECT_EQ(all_xor[n], rows[n][0] ^ rows[n][1]);
      EXPECT_EQ(all_not[n], ~rows[n][0] & mask_of(width));
    }
  }
}

TEST(PtxBits, ShiftsByTheWidthOrMore) {
  for (const int width : {16, 32, 64}) {
    const std::string number = std::to_string(width), reg = "b" + number;
    std::vector<Row> rows;
    for (const auto a : kValues)
      for (const std::uint64_t by : {0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 100})
        rows.push_back({a & mask_of(width), by, 0, 0});
    const auto left = evaluate("shl." + reg + " $d, $1, $2", reg, {reg, "b32"}, rows);
    const auto logical = evaluate("shr.u" + number + " $d, $1, $2", reg, {reg, "b32"}, rows);
    const auto arithmetic = evaluate("shr.s" + number + " $d, $1, $2", reg, {reg, "b32"}, rows);
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const auto [a, by, c, d] = rows[n];
      const bool within = by < static_cast<std::uint64_t>(width);
      EXPECT_EQ(left[n], within ? a << by & mask_of(width) : 0) << width << " " << a << " " << by;
      EXPECT_EQ(logical[n], within ? a >> by : 0) << width << " " << a << " " << by;
      EXPECT_EQ(arithmetic[n],
                static_cast<std::uint64_t>(sign_extended(a, width) >> (within ? by : width - 1)) & mask_of(width))
          << width << " " << a << " " << by;
    }
  }
}

TEST(PtxBits, CountsAndPositions) {
  for (const int width : {32, 64}) {
    const std::string number = std::to_string(width), reg = "b" + number;
    std::vector<Row> rows;
    for (const auto a : kValues) rows.push_back({a & mask_of(width), 0, 0, 0});
    const auto ones = evaluate("popc." + reg + " $d, $1", "b32", {reg}, rows);
    const auto zeros = evaluate("clz." + reg + " $d, $1", "b32", {reg}, rows);
    const auto reversed = evaluate("brev." + reg + " $d, $1", reg, {reg}, rows);
    const auto unsigned_top = evaluate("bfind.u" + number + " $d, $1", "b32", {reg}, rows);
    const auto signed_top = evaluate("bfind.s" + number + " $d, $1", "b32", {reg}, rows);
    const auto amount = evaluate("bfind.shiftamt.u" + number + " $d, $1", "b32", {reg}, rows);
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const std::uint64_t a = rows[n][0];
      const int leading = std::countl_zero(a) - (64 - width);
      EXPECT_EQ(ones[n], static_cast<std::uint64_t>(std::popcount(a)));
      EXPECT_EQ(zeros[n], static_cast<std::uint64_t>(leading));
      std::uint64_t mirror = 0;
      for (int bit = 0; bit < width; ++bit) mirror |= (a >> bit & 1) << (width - 1 - bit);
      EXPECT_EQ(reversed[n], mirror);
      EXPECT_EQ(unsigned_top[n], a ? width - 1u - leading : 0xFFFFFFFFu);
      EXPECT_EQ(amount[n], a ? static_cast<std::uint64_t>(leading) : 0xFFFFFFFFu);
      const std::uint64_t other = sign_extended(a, width) < 0 ? ~a & mask_of(width) : a;
      EXPECT_EQ(signed_top[n], other ? 63u - std::countl_zero(other) : 0xFFFFFFFFu);
    }
  }
}

TEST(PtxBits, Fields) {
  const std::vector<Row> insert = {{0xABCD, 0x11111111, 8, 16}, {0xFF, 0, 28, 8}, {5, 7, 0, 0}, {0xFF, 0, 40, 8}};
  EXPECT_EQ(evaluate("bfi.b32 $d, $1, $2, $3, $4", "b32", {"b32", "b32", "b32", "b32"}, insert),
            (Bits{0x11ABCD11, 0xF0000000, 7, 0}));
  EXPECT_EQ(evaluate("bfi.b64 $d, $1, $2, $3, $4", "b64", {"b64", "b64", "b32", "b32"}, {{0xABCD, 0, 40, 16}}),
            (Bits{0xABCD0000000000}));
  const std::vector<Row> extract = {
      {0x12345678, 8, 8, 0}, {0x0000F000, 12, 4, 0}, {0xFFFFFFFF, 0, 0, 0}, {0x80000000, 28, 16, 0}};
  EXPECT_EQ(evaluate("bfe.u32 $d, $1, $2, $3", "b32", {"b32", "b32", "b32"}, extract), (Bits{0x56, 0xF, 0, 8}));
  EXPECT_EQ(evaluate("bfe.s32 $d, $1, $2, $3", "b32", {"b32", "b32", "b32"}, extract),
            (Bits{0x56, 0xFFFFFFFF, 0, 0xFFFFFFF8}));
  const std::vector<Row> wide = {
      {0x123456789ABCDEF0, 36, 12, 0}, {0x00F0000000000000, 52, 4, 0}, {~0ull, 0, 0, 0},
      {0x8000000000000000, 60, 16, 0}, {0x8000000000000000, 0, 64, 0}, {0x8000000000000000, 70, 4, 0}};
  EXPECT_EQ(evaluate("bfe.u64 $d, $1, $2, $3", "b64", {"b64", "b32", "b32"}, wide),
            (Bits{0x567, 0xF, 0, 8, 0x8000000000000000, 0}));
  EXPECT_EQ(evaluate("bfe.s64 $d, $1, $2, $3", "b64", {"b64", "b32", "b32"}, wide),
            (Bits{0x567, ~0ull, 0, ~7ull, 0x8000000000000000, ~0ull}));
}

TEST(PtxBits, Permutations) {
  const std::vector<Row> rows = {
      {0x33221100, 0x77665544, 0x3210, 0}, {0x33221100, 0x77665544, 0x7531, 0}, {0x33228100, 0x77665544, 0x9980, 0}};
  EXPECT_EQ(evaluate("prmt.b32 $d, $1, $2, $3", "b32", {"b32", "b32", "b32"}, rows),
            (Bits{0x33221100, 0x77553311, 0xFFFF0000}));
  EXPECT_EQ(evaluate("lop3.b32 $d, $1, $2, $3, 0xE8", "b32", {"b32", "b32", "b32"}, {{0xF0F0, 0xFF00, 0xCCCC, 0}})[0],
            (0xF0F0u & 0xFF00u) | (0xF0F0u & 0xCCCCu) | (0xFF00u & 0xCCCCu));
  const std::vector<Row> funnel = {{0x11111111, 0x22222222, 8, 0}, {0x11111111, 0x22222222, 40, 0}};
  EXPECT_EQ(evaluate("shf.l.wrap.b32 $d, $1, $2, $3", "b32", {"b32", "b32", "b32"}, funnel),
            (Bits{0x22222211, 0x22222211}));
  EXPECT_EQ(evaluate("shf.r.clamp.b32 $d, $1, $2, $3", "b32", {"b32", "b32", "b32"}, funnel),
            (Bits{0x22111111, 0x22222222}));
  EXPECT_EQ(evaluate("shf.l.clamp.b32 $d, $1, $2, $3", "b32", {"b32", "b32", "b32"}, funnel),
            (Bits{0x22222211, 0x11111111}));
  EXPECT_EQ(evaluate("shf.r.wrap.b32 $d, $1, $2, $3", "b32", {"b32", "b32", "b32"}, funnel),
            (Bits{0x22111111, 0x22111111}));
}

} // namespace triax::test
