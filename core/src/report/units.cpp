// SPDX-License-Identifier: Apache-2.0
#include "report/units.hpp"

#include <cmath>

#include "base/bytes_text.hpp"
#include "triax/text.hpp"

namespace triax::report {

namespace {

/// "4 min 02 s"
std::string pair(std::int64_t large, const char* large_unit, std::int64_t small, const char* small_unit) {
  return text("{} {} {}{} {}", large, large_unit, small < 10 ? "0" : "", small, small_unit);
}

} // namespace

std::string percent_text(double part) {
  return decimals_text(100 * part, 1) + " %";
}

std::string count_text(double count) {
  return scaled_text(count, "");
}

std::string counted_text(std::int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return text("1 {}", one);
  return many.empty() ? text("{} {}s", count, one) : text("{} {}", count, many);
}

std::string bytes_text(std::uint64_t bytes) {
  return triax::bytes_text(bytes);
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
