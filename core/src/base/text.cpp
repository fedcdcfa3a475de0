// SPDX-License-Identifier: Apache-2.0
#include "triax/text.hpp"

#include <charconv>
#include <cmath>

namespace triax {

namespace {

template <class Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return "nan"; // not "-nan": its sign means nothing
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

} // namespace

std::string to_text(double value) {
  return shortest(value);
}
std::string to_text(float value) {
  return shortest(value);
}

std::string fill_in(std::string_view pattern, std::initializer_list<std::string> arguments) {
  std::string out;
  auto next = arguments.begin();
  while (!pattern.empty()) {
    const std::size_t hole = next == arguments.end() ? std::string_view::npos : pattern.find("{}");
    if (hole == std::string_view::npos) break;
    out.append(pattern.substr(0, hole)).append(*next++);
    pattern.remove_prefix(hole + 2);
  }
  out.append(pattern);
  for (; next != arguments.end(); ++next) out.append(" ").append(*next);
  return out;
}

} // namespace triax
