// SPDX-License-Identifier: Apache-2.0
// Names with "{}" in place of a number: "block {}/mlp.up.weight".
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/printable.hpp"

namespace triax::hf {

inline constexpr std::string_view kNumber = "{}";

inline bool has_number(std::string_view pattern) {
  return pattern.find(kNumber) != std::string_view::npos;
}

/// Whether it is the name of something, with one number at most.
inline bool is_pattern(std::string_view pattern) {
  return !pattern.empty() && pattern.find(kNumber) == pattern.rfind(kNumber) && is_utf8(pattern);
}

/// The number of `name` if it is `pattern` with a number; "" for a pattern without "{}" that is equal.
inline std::optional<std::string> number_in(std::string_view name, std::string_view pattern) {
  const std::size_t at = pattern.find(kNumber);
  if (at == std::string_view::npos) return name == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + kNumber.size());
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  const std::string_view number = name.substr(at, name.size() - before.size() - after.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::string(number);
}

inline std::string with_number(std::string pattern, std::string_view number) {
  const std::size_t at = pattern.find(kNumber);
  return at == std::string::npos ? pattern : pattern.replace(at, kNumber.size(), number);
}

} // namespace triax::hf
