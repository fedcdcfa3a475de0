// SPDX-License-Identifier: Apache-2.0
// Sizes of memory in messages, as the engine writes them (report/units.hpp, which this library cannot use): "30 MB",
// "8.59 GB".
//
// Threads: pure function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace triax::cuda {

/// Three significant digits, decimal multiples (1 kB = 1000 B).
inline std::string memory_text(double bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  std::array<char, 400> number{}; // the largest double has 309 digits before the point
  std::snprintf(number.data(), number.size(), "%.*f", bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0, bytes);
  std::string out = number.data();
  if (out.find('.') != std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
  }
  return out + " " + kUnits[unit];
}

} // namespace triax::cuda
