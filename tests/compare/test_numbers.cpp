// SPDX-License-Identifier: Apache-2.0
// Whether two runs compute the same numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compare/numbers.hpp"

namespace triax::compare {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

Agreement of(std::vector<Pair> values) {
  return agreement_of(values);
}

TEST(Numbers, AreEqualIfAllBitsAre) {
  const Agreement out = of({{1, 0.1, 0.1}, {2, kNan, kNan}, {3, kInfinity, kInfinity}});
  EXPECT_EQ(out.steps, 3);
  EXPECT_FALSE(out.first_difference);
  EXPECT_EQ(out.max_ulp, 0u);
  EXPECT_EQ(out.max_relative, 0);
}

TEST(Numbers, NameTheFirstAndTheLargestDifference) {
  const double next = std::nextafter(1.0, 2.0);
  const Agreement out = of({{4, 2, 2}, {5, 1, next}, {6, 4, 4.5}, {7, 1, std::nextafter(next, 2.0)}});
  EXPECT_EQ(out.first_difference, 5);
  EXPECT_EQ(out.max_step, 6);
  EXPECT_DOUBLE_EQ(out.max_relative, 0.5 / 4.5);
  EXPECT_EQ(out.max_ulp, std::uint64_t{1} << 49) << "an eighth of 2^52 from 4 to 4.5";
}

TEST(Numbers, CountUlpsAcrossZero) {
  const double least = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(of({{1, -least, least}}).max_ulp, 2u);
  EXPECT_FALSE(of({{1, -0.0, 0.0}}).first_difference);
}

TEST(Numbers, OneThatIsNotFiniteDiffersInfinitely) {
  for (const double other : {kNan, kInfinity, -kInfinity}) {
    const Agreement out = of({{1, 1, other}});
    EXPECT_EQ(out.first_difference, 1);
    EXPECT_EQ(out.max_relative, kInfinity);
    EXPECT_EQ(out.max_ulp, std::numeric_limits<std::uint64_t>::max());
  }
}

} // namespace
} // namespace triax::compare
