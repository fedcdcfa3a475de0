// SPDX-License-Identifier: Apache-2.0
// Sizes in messages: "512 B", "3.4 GB".
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/scaled_text.hpp"

namespace triax {

/// Three significant digits, decimal multiples (1 kB = 1000 B).
inline std::string bytes_text(std::uint64_t bytes) {
  return scaled_text(static_cast<double>(bytes), "B");
}

} // namespace triax
