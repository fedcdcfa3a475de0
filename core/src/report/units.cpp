// SPDX-License-Identifier: Apache-2.0
#include "report/units.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include "triax/text.hpp"

namespace triax::report {

std::string decimals_text(double value, int decimals) {
  std::array<char, 400> out{}; // the largest double has 309 digits before the point
  std::snprintf(out.data(), out.size(), "%.*f", decimals, value);
  return out.data();
}

namespace {

/// Three significant digits of a value below 1000, without trailing zeros.
std::string three_digits(double value) {
  std::string out = decimals_text(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  if (out.find('.') == std::string::npos) return out;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

std::string scaled(double value, const char* unit) {
  if (!std::isfinite(value)) return triax::to_text(value);
  if (value < 0) return "-" + scaled(-value, unit);
  constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const std::string symbol = std::string(kPrefixes[prefix]) + unit;
  return three_digits(value) + (symbol.empty() ? "" : " ") + symbol;
}

/// "4 min 02 s"
std::string pair(std::int64_t large, const char* large_unit, std::int64_t small, const char* small_unit) {
  return text("{} {} {}{} {}", large, large_unit, small < 10 ? "0" : "", small, small_unit);
}

} // namespace

std::string percent_text(double part) {
  return decimals_text(100 * part, 1) + " %";
}

std::string count_text(double count) {
  return scaled(count, "");
}

std::string bytes_text(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), "B");
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "?";
  if (seconds < 0.9995) return three_digits(seconds * 1000) + " ms";
  const std::int64_t whole = std::llround(seconds);
  if (whole < 60) return text("{} s", whole);
  if (whole < 3600) return pair(whole / 60, "min", whole % 60, "s");
  const std::int64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) return pair(minutes / 60, "h", minutes % 60, "min");
  const std::int64_t hours = (whole + 1800) / 3600;
  return pair(hours / 24, "d", hours % 24, "h");
}

} // namespace triax::report
