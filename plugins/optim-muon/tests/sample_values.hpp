// SPDX-License-Identifier: Apache-2.0
// Weights and gradients of the tests of optim-muon.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace triax::test {

/// Different values of both signs, of no pattern.
inline std::vector<double> sample_values(std::size_t count, double phase) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = std::sin(phase + 1.7 * static_cast<double>(i * i + 3 * i));
  return out;
}

} // namespace triax::test
