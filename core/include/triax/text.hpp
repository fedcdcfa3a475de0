// SPDX-License-Identifier: Apache-2.0
// Text for errors and logs: text("m = {} is not a multiple of p = {}", m, p).
//
// Threads: any. Ownership: returns values. Blocking: never. Errors: none.
// Each {} takes the next argument. Additional arguments are appended, and additional {} stay as they are, so that an
// incorrect pattern still reports its values. gcc 12 has no std::format, and public headers have no third-party types.
#pragma once

#include <concepts>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// Shortest decimal text that reads back to the same bits.
/// @{
TRIAX_API std::string to_text(double value);
TRIAX_API std::string to_text(float value);
/// @}

/// A value as text() writes it.
/// @{
inline std::string to_text(bool value) {
  return value ? "true" : "false";
}
inline std::string to_text(char value) {
  return std::string(1, value);
}
inline std::string to_text(const char* value) {
  return value ? value : "(null)";
}
inline std::string to_text(std::string_view value) {
  return std::string(value);
}
inline std::string to_text(const std::string& value) {
  return value;
}
inline std::string to_text(const std::filesystem::path& value) {
  return value.string();
}
template <std::integral Int>
std::string to_text(Int value) {
  return std::to_string(value);
}
/// @}

/// Replaces each {} of `pattern` by the next of `arguments`.
TRIAX_API std::string fill_in(std::string_view pattern, std::initializer_list<std::string> arguments);

/// Replaces each {} of `pattern` by the text of the next argument.
template <class... Args>
std::string text(std::string_view pattern, const Args&... arguments) {
  return fill_in(pattern, {to_text(arguments)...});
}

} // namespace triax
