// SPDX-License-Identifier: Apache-2.0
// Initial values: the same on every split and number of threads, with the distribution that a parameter asks for.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/init.hpp"
#include "executor/sample_model.hpp"

namespace triax {
namespace {

using test::sample_param;

TEST(Init, EverySplitDrawsTheSameValues) {
  ParamSpec whole = sample_param("w", {6, 8}, 5);
  std::vector<double> all(48), part(24);
  executor::draw_weights({all.data(), DType::f64, {6, 8}}, whole, 9);
  ParamSpec columns = whole;
  columns.cuts = {{"tensor", 1, 4, 8}};
  columns.local = {6, 4};
  executor::draw_weights({part.data(), DType::f64, {6, 4}}, columns, 9);
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t column = 0; column < 4; ++column) EXPECT_EQ(part[row * 4 + column], all[row * 8 + 4 + column]);
}

/// Large enough for several threads; some splits begin within a Philox block.
TEST(Init, EachElementIsItsOwnOnAnyNumberOfThreads) {
  struct Split {
    int dim;
    std::int64_t begin, end;
    Shape local;
  };
  const Shape global{401, 3, 1001};
  for (const Split& split : {Split{-1, 0, 0, global},
                             {0, 67, 401, {350, 3, 1001}},
                             {1, 1, 3, {401, 2, 1001}},
                             {2, 333, 999, {401, 3, 700}}}) {
    ParamSpec spec = sample_param("w", global, 5);
    if (split.dim >= 0) spec.cuts = {{"tensor", split.dim, split.begin, split.end}};
    spec.local = split.local;
    const auto count = static_cast<std::size_t>(spec.local.elements());
    std::vector<float> one(count, -1), four(count, -1);
    executor::draw_weights({one.data(), DType::f32, spec.local}, spec, 9);
    executor::draw_weights({four.data(), DType::f32, spec.local}, spec, 9, 4);
    EXPECT_EQ(one, four);
    for (std::int64_t local = 0; local < spec.local.elements(); local += 997) {
      const std::int64_t at[] = {local / (spec.local[2] * spec.local[1]), local / spec.local[2] % spec.local[1],
                                 local % spec.local[2]};
      std::int64_t element = 0;
      bool padding = false;
      for (int dim = 0; dim < 3; ++dim) {
        const std::int64_t index = at[dim] + (dim == split.dim ? split.begin : 0);
        padding |= dim == split.dim && index >= split.end;
        element = element * global[dim] + index;
      }
      const double value = executor::initial_value(spec.init, 9, spec.site, static_cast<std::uint64_t>(element));
      EXPECT_EQ(one[static_cast<std::size_t>(local)], padding ? 0 : static_cast<float>(value)) << local;
    }
  }
}

/// Rows by one axis and columns by another, with padding of both.
TEST(Init, TwoCutsDrawTheValuesOfTheWhole) {
  ParamSpec spec = sample_param("w", {6, 8}, 5);
  spec.cuts = {{"expert", 0, 4, 6}, {"tensor", 1, 3, 8}};
  spec.local = {3, 6};
  std::vector<float> part(18);
  executor::draw_weights({part.data(), DType::f32, spec.local}, spec, 9);
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t column = 0; column < 6; ++column) {
      const auto element = static_cast<std::uint64_t>((row + 4) * 8 + column + 3);
      const bool padding = row >= 2 || column >= 5;
      EXPECT_EQ(part[static_cast<std::size_t>(row * 6 + column)],
                padding ? 0 : static_cast<float>(executor::initial_value(spec.init, 9, spec.site, element)));
    }
}

TEST(Init, IsNormal) {
  const Init init{Init::Kind::normal, 0.5};
  constexpr int kCount = 20000;
  double sum = 0, squares = 0, neighbours = 0, before = 0;
  int beyond = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = executor::initial_value(init, 3, 7, static_cast<std::uint64_t>(i));
    sum += value;
    squares += value * value;
    neighbours += value * before;
    beyond += std::abs(value) > 0.5;
    before = value;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.015);
  EXPECT_NEAR(squares / kCount, 0.25, 0.01);
  EXPECT_NEAR(neighbours / kCount, 0, 0.01);
  EXPECT_NEAR(static_cast<double>(beyond) / kCount, 0.3173, 0.015); // more than one standard deviation
  EXPECT_NE(executor::initial_value(init, 3, 7, 0), executor::initial_value(init, 3, 8, 0));
  EXPECT_NE(executor::initial_value(init, 3, 7, 0), executor::initial_value(init, 4, 7, 0));
}

TEST(Init, ZerosAndOnes) {
  EXPECT_EQ(executor::initial_value({Init::Kind::zeros, 0}, 1, 1, 5), 0);
  EXPECT_EQ(executor::initial_value({Init::Kind::ones, 0}, 1, 1, 5), 1);
}

} // namespace
} // namespace triax
