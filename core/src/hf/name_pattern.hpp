// SPDX-License-Identifier: Apache-2.0
// Names with "{}" in place of a number: "block {}/mlp.up.weight".
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace triax::hf {

/// The number of `name` if it is `pattern` with a number; "" for a pattern without "{}" that is equal.
inline std::optional<std::string> number_in(std::string_view name, std::string_view pattern) {
  const std::size_t at = pattern.find("{}");
  if (at == std::string_view::npos) return name == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + 2);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  const std::string_view number = name.substr(at, name.size() - before.size() - after.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::string(number);
}

inline std::string with_number(std::string pattern, std::string_view number) {
  for (std::size_t at = 0; (at = pattern.find("{}", at)) != std::string::npos; at += number.size())
    pattern.replace(at, 2, number);
  return pattern;
}

} // namespace triax::hf
