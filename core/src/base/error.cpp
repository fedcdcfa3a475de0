// SPDX-License-Identifier: Apache-2.0
#include "triax/error.hpp"

namespace triax {

namespace {

std::string sentence(const std::string& message, const std::string& where, const std::string& hint) {
  std::string out = where.empty() ? message : where + ": " + message;
  if (!hint.empty()) out += "\n  " + hint;
  return out;
}

} // namespace

Error::Error(std::string message, std::string where, std::string hint)
    : std::runtime_error(sentence(message, where, hint)),
      message_(std::move(message)),
      where_(std::move(where)),
      hint_(std::move(hint)) {}

Error::~Error() = default;

void fail_requirement(const char* condition, const std::string& message, const char* file, int line) {
  throw Error(message.empty() ? text("{} does not hold", condition) : message, text("{}:{}", file, line));
}

} // namespace triax
