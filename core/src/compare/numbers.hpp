// SPDX-License-Identifier: Apache-2.0
// Whether two runs compute the same numbers, step by step.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace triax::compare {

/// A value of both sides in the same step.
struct Pair {
  std::int64_t step = 0;
  double a = 0, b = 0; // both NaN: equal
};

struct Agreement {
  std::int64_t steps = 0;
  std::optional<std::int64_t> first_difference; // the step; empty: all bits are equal
  /// The largest difference in units in the last place of a double; all bits are set if it is not finite.
  std::uint64_t max_ulp = 0;
  double max_relative = 0;   // |a - b| / max(|a|, |b|); infinite if not finite
  std::int64_t max_step = 0; // the step with the largest relative difference
};

Agreement agreement_of(std::span<const Pair> values);

} // namespace triax::compare
