// SPDX-License-Identifier: Apache-2.0
// Numbers with three significant digits and decimal multiples of a unit: "30 MB", "8.59 GB". Inline, because
// libtriax_cuda writes them, too, and sees only the headers of this module.
//
// Threads: pure functions.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>

#include "triax/text.hpp"

namespace triax {

/// 5.5 with four decimals is "5.5000".
inline std::string decimals_text(double value, int decimals) {
  if (std::isnan(value)) return "nan"; // not "-nan": the sign of a value that is not a number means nothing
  std::array<char, 400> out{};         // the largest double has 309 digits before the point
  std::snprintf(out.data(), out.size(), "%.*f", decimals, value);
  return out.data();
}

/// Three significant digits of a value below 1000, without trailing zeros.
inline std::string three_digits(double value) {
  std::string out = decimals_text(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  if (out.find('.') == std::string::npos) return out;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

/// 8.59e9 of "B" is "8.59 GB"; "12.3 k" for an empty unit.
inline std::string scaled_text(double value, const char* unit) {
  if (!std::isfinite(value)) return to_text(value);
  if (value < 0) return "-" + scaled_text(-value, unit);
  constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const std::string symbol = std::string(kPrefixes[prefix]) + unit;
  return three_digits(value) + (symbol.empty() ? "" : " ") + symbol;
}

} // namespace triax
