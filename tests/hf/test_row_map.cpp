// SPDX-License-Identifier: Apache-2.0
// Rows of parameters in the tensors of transformers, for the layouts of GPT-2 and of the Llama family.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "hf/name_pattern.hpp"
#include "hf/row_map.hpp"
#include "support/error_of.hpp"

namespace triax::hf {
namespace {

using test::error_of;
using ::testing::HasSubstr;

/// Where each row of the parameter comes from, as tensor * 1000 + row.
std::vector<std::int64_t> sources(const HfParameter& row, std::int64_t rows) {
  const RowMap map(row, rows);
  std::vector<std::int64_t> out;
  while (static_cast<std::int64_t>(out.size()) < rows) {
    const RowRun run = map.from_parameter(static_cast<std::int64_t>(out.size()));
    EXPECT_GT(run.count, 0);
    for (std::int64_t i = 0; i < run.count; ++i)
      out.push_back(static_cast<std::int64_t>(run.tensor) * 1000 + run.row + i);
  }
  return out;
}

/// from_tensor() must be the inverse of from_parameter(), with runs that cover each tensor once.
void expect_inverse(const HfParameter& row, std::int64_t rows) {
  const RowMap map(row, rows);
  const std::vector<std::int64_t> expected = sources(row, rows);
  std::int64_t seen = 0;
  for (std::size_t tensor = 0; tensor < map.tensors(); ++tensor)
    for (std::int64_t at = 0; at < map.rows_of(tensor);) {
      const RowRun run = map.from_tensor(tensor, at);
      ASSERT_GT(run.count, 0);
      for (std::int64_t i = 0; i < run.count; ++i)
        EXPECT_EQ(expected[static_cast<std::size_t>(run.parameter_row + i)],
                  static_cast<std::int64_t>(tensor) * 1000 + at + i);
      at += run.count;
      seen += run.count;
    }
  EXPECT_EQ(seen, rows);
}

/// c_attn has [3, head, d], the engine [head, 3, d].
TEST(RowMap, ReordersGpt2Heads) {
  constexpr std::int64_t kHeads = 3, kDim = 4, kHidden = kHeads * kDim;
  const HfParameter row{
      .parameter = "qkv", .tensors = {"c_attn"}, .parts = {kHidden, kHidden, kHidden}, .groups = kHeads};
  std::vector<std::int64_t> expected;
  for (std::int64_t head = 0; head < kHeads; ++head)
    for (std::int64_t part = 0; part < 3; ++part)
      for (std::int64_t i = 0; i < kDim; ++i) expected.push_back((part * kHeads + head) * kDim + i);
  EXPECT_EQ(sources(row, 3 * kHidden), expected);
  expect_inverse(row, 3 * kHidden);
}

/// q, k and v are separate tensors; each group has the query heads that share a head of keys.
TEST(RowMap, JoinsGroupedQueries) {
  constexpr std::int64_t kHeads = 6, kKvHeads = 2, kDim = 2;
  const HfParameter row{.parameter = "qkv",
                        .tensors = {"q", "k", "v"},
                        .parts = {kHeads * kDim, kKvHeads * kDim, kKvHeads * kDim},
                        .groups = kKvHeads};
  EXPECT_EQ(sources(row, 20), (std::vector<std::int64_t>{0, 1, 2, 3, 4,  5,  1000, 1001, 2000, 2001, //
                                                         6, 7, 8, 9, 10, 11, 1002, 1003, 2002, 2003}));
  expect_inverse(row, 20);
}

/// The same parts in one tensor.
TEST(RowMap, SplitsOneTensorIntoPartsOfOtherSizes) {
  const HfParameter row{.parameter = "qkv", .tensors = {"qkv"}, .parts = {12, 4, 4}, .groups = 2};
  EXPECT_EQ(sources(row, 20), (std::vector<std::int64_t>{0, 1, 2, 3, 4,  5,  12, 13, 16, 17, //
                                                         6, 7, 8, 9, 10, 11, 14, 15, 18, 19}));
  expect_inverse(row, 20);
}

/// Gate and up of SwiGLU are two parts of one parameter, [2, f, h].
TEST(RowMap, JoinsGateAndUp) {
  const HfParameter row{.parameter = "up", .tensors = {"gate_proj", "up_proj"}};
  EXPECT_EQ(sources(row, 6), (std::vector<std::int64_t>{0, 1, 2, 1000, 1001, 1002}));
  expect_inverse(row, 6);
  expect_inverse({.parameter = "norm", .tensors = {"norm"}}, 7);
}

TEST(RowMap, RefusesTablesThatContradictTheShape) {
  const auto refusal = [](const HfParameter& row) { return error_of([&] { RowMap(row, 12); }); };
  EXPECT_THAT(refusal({.parameter = "p", .tensors = {}}), HasSubstr("names no tensor"));
  EXPECT_THAT(refusal({.parameter = "p", .tensors = {"a"}, .groups = 0}), HasSubstr("has 0 groups"));
  EXPECT_THAT(refusal({.parameter = "p", .tensors = {"a", "b", "c", "d", "e"}}),
              HasSubstr("divides 12 rows among 5 tensors"));
  EXPECT_THAT(refusal({.parameter = "p", .tensors = {"a"}, .parts = {8, 4}, .groups = 8}),
              HasSubstr("has a part of 4 rows, which 8 groups do not divide"));
  EXPECT_THAT(refusal({.parameter = "p", .tensors = {"a"}, .parts = {8, 8}}),
              HasSubstr("has parts of more than the 12 rows of the parameter"));
  EXPECT_THAT(refusal({.parameter = "p", .tensors = {"a"}, .parts = {INT64_MAX, INT64_MAX}}),
              HasSubstr("has parts of more than the 12 rows of the parameter"));
  EXPECT_THAT(refusal({.parameter = "p", .tensors = {"a"}, .parts = {8}}),
              HasSubstr("has parts of 8 rows in all, but the parameter has 12"));
}

TEST(NamePattern, FindsTheNumber) {
  EXPECT_EQ(number_in("block 12/w", "block {}/w"), "12");
  EXPECT_EQ(number_in("head/w", "head/w"), "");
  for (const char* name : {"block /w", "block x/w", "block 1/v", "block 1/ww", "block 1", "block -1/w"})
    EXPECT_EQ(number_in(name, "block {}/w"), std::nullopt) << name;
  EXPECT_EQ(with_number("h.{}.a", "7"), "h.7.a");
  EXPECT_EQ(with_number("head", ""), "head");
  for (const char* pattern : {"", "a.{}.b.{}", "\xff"}) EXPECT_FALSE(is_pattern(pattern)) << pattern;
  for (const char* pattern : {"a", "a.{}", "{}"}) EXPECT_TRUE(is_pattern(pattern)) << pattern;
}

} // namespace
} // namespace triax::hf
