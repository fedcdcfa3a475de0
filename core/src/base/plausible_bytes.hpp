// SPDX-License-Identifier: Apache-2.0
// Sizes that a plugin returns, before they are added up.
#pragma once

#include <cstddef>

#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax {

/// Returns `bytes`. Throws Error if no machine has as much memory: sums of such sizes would overflow.
inline std::size_t plausible_bytes(std::size_t bytes, const char* function) {
  constexpr std::size_t kMax = std::size_t{1} << 50;
  if (bytes <= kMax) return bytes;
  throw Error(text("{} returned {}: no machine has this many bytes", function, bytes), {},
              "this is a defect of the plugin: report it to its author");
}

} // namespace triax
