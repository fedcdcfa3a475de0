// SPDX-License-Identifier: Apache-2.0
// The frequencies of the operation rope, in one function, so that all kernel sets rotate by the same angles.
//
// Threads: pure function. Ownership, blocking, errors: none. Plain arithmetic without calls, so that kernel sets for
// any device may use it (nvcc: --expt-relaxed-constexpr).
#pragma once

#include <numbers>

#include "triax/kernel_ops.hpp"

namespace triax {

/// The frequency of a pair in radians per position, for its unscaled frequency base^(-2i/d).
constexpr double scaled_frequency(double frequency, const RopeScaling& scaling) noexcept {
  if (scaling.factor == 1) return frequency;
  const double turns = frequency * scaling.original_positions / (2 * std::numbers::pi);
  const double between = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  const double kept = between < 0 ? 0 : between > 1 ? 1 : between;
  return kept * frequency + (1 - kept) * frequency / scaling.factor;
}

} // namespace triax
