// SPDX-License-Identifier: Apache-2.0
#include "config/byte_size.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace triax::config {

namespace {

/// 1024^2 for "MiB", 1000^2 for "MB"; empty for an unknown unit.
std::optional<double> factor_of(std::string_view unit) {
  if (unit == "B") return 1;
  constexpr std::string_view kPrefixes = "KMGTP";
  if (unit.starts_with('k')) return unit == "kB" ? std::optional(1e3) : std::nullopt;
  const std::size_t power = unit.empty() ? std::string_view::npos : kPrefixes.find(unit.front());
  const bool binary = unit.size() == 3 && unit.ends_with("iB");
  if (power == std::string_view::npos || !(binary || (unit.size() == 2 && unit.ends_with("B")))) return std::nullopt;
  double out = 1;
  for (std::size_t i = 0; i <= power; ++i) out *= binary ? 1024 : 1000;
  return out;
}

constexpr double kMaxBytes = 1e18; // kMaxSize

/// Bytes without the limit of kMaxSize.
std::optional<double> size_of(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view rest(unit, static_cast<std::size_t>(end - unit));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::optional<double> factor = factor_of(rest);
  if (!factor || !(number * *factor >= 1) || !std::isfinite(number)) return std::nullopt; // also rejects NaN
  return number * *factor;
}

} // namespace

std::optional<std::uint64_t> bytes_of(std::string_view text) {
  const std::optional<double> size = size_of(text);
  if (!size || *size > kMaxBytes) return std::nullopt;
  return static_cast<std::uint64_t>(*size);
}

bool is_too_large(std::string_view text) {
  return size_of(text).value_or(0) > kMaxBytes;
}

} // namespace triax::config
