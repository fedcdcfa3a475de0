// SPDX-License-Identifier: Apache-2.0
// Text inside XML: SVG, HTML and JUnit files.
//
// Header only, like printable.hpp: the engine and the conformance library each compile it.
#pragma once

#include <string>
#include <string_view>

#include "base/printable.hpp"

namespace triax {

/// For text and attributes in double quotes. Invalid UTF-8 and control characters, which XML does not allow, become
/// U+FFFD; line breaks and tabs stay.
inline std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char first = text.front();
    const bool is_allowed = length > 0 && (static_cast<unsigned char>(first) >= ' ' || first == '\n' || first == '\t');
    const std::string_view character = text.substr(0, length > 0 ? length : 1);
    text.remove_prefix(character.size());
    if (!is_allowed) {
      out += "\xEF\xBF\xBD";
    } else if (first == '&') {
      out += "&amp;";
    } else if (first == '<') {
      out += "&lt;";
    } else if (first == '>') {
      out += "&gt;";
    } else if (first == '"') {
      out += "&quot;";
    } else {
      out += character;
    }
  }
  return out;
}

} // namespace triax
