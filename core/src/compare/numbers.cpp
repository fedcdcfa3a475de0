// SPDX-License-Identifier: Apache-2.0
#include "compare/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace triax::compare {

namespace {

bool are_equal(const Pair& values) {
  return values.a == values.b || (std::isnan(values.a) && std::isnan(values.b));
}

/// Orders the bits of doubles as the numbers; 0 and -0 are one number.
std::int64_t position_of(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
}

std::uint64_t ulps(const Pair& values) {
  if (!std::isfinite(values.a) || !std::isfinite(values.b)) return std::numeric_limits<std::uint64_t>::max();
  const std::int64_t a = position_of(values.a), b = position_of(values.b);
  return static_cast<std::uint64_t>(std::max(a, b)) - static_cast<std::uint64_t>(std::min(a, b));
}

double relative(const Pair& values) {
  const double out = std::abs(values.a - values.b) / std::max(std::abs(values.a), std::abs(values.b));
  return std::isfinite(out) ? out : std::numeric_limits<double>::infinity();
}

} // namespace

Agreement agreement_of(std::span<const Pair> values) {
  Agreement out;
  for (const Pair& one : values) {
    ++out.steps;
    if (are_equal(one)) continue;
    if (!out.first_difference) out.first_difference = one.step;
    out.max_ulp = std::max(out.max_ulp, ulps(one));
    if (const double difference = relative(one); difference > out.max_relative) {
      out.max_relative = difference;
      out.max_step = one.step;
    }
  }
  return out;
}

} // namespace triax::compare
