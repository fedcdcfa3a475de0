// SPDX-License-Identifier: Apache-2.0
// Errors, and answers to capability queries.
//
// Threads: values, any thread. Ownership: values own their text. Blocking: never.
// An Error says what went wrong, where, and what to do next. The core and plugins may throw it anywhere. Each rank
// catches it in one place, its main function, and logs it once.
// A Support answers whether something is supported, before any work starts: yes, or no with a reason.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "triax/export.hpp"
#include "triax/text.hpp"

namespace triax {

/// what() is "where: message", and the hint on a separate line that is indented by two spaces. Empty parts are left
/// out.
class TRIAX_API Error : public std::runtime_error {
 public:
  /// `where`: file:line:column, "rank 2, step 118, 0F3", a path... `hint`: the next step for the reader.
  explicit Error(std::string message, std::string where = {}, std::string hint = {});
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override; // out of line, so that its type_info exists once, in libtriax_core

  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string message_;
  std::string where_;
  std::string hint_;
};

/// yes(), or no() with the reason. Write configuration keys in full in a reason ("model.heads = 5 is not divisible by
/// parallel.tensor = 2"): the core adds the file and line of every key it finds.
class Support {
 public:
  static Support yes() { return {}; }
  template <class... Args>
  static Support no(std::string_view pattern, const Args&... arguments) {
    Support support;
    support.reason_ = text(pattern, arguments...);
    if (support.reason_.empty()) support.reason_ = "refused, without a reason"; // an empty reason would mean yes
    return support;
  }

  /// The next step, as one line: "use heads 4 or 6, or tensor 1 or 5".
  template <class... Args>
  Support&& hint(std::string_view pattern, const Args&... arguments) && {
    hint_ = text(pattern, arguments...);
    return static_cast<Support&&>(*this);
  }

  explicit operator bool() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string reason_;
  std::string hint_;
};

/// Throws Error(text(pattern, ...)) unless `condition` holds: for preconditions of a function.
#define TRIAX_REQUIRE(condition, ...)                                                                        \
  do {                                                                                                       \
    if (!(condition)) ::triax::fail_requirement(#condition, ::triax::text(__VA_ARGS__), __FILE__, __LINE__); \
  } while (false)

[[noreturn]] TRIAX_API void fail_requirement(const char* condition, const std::string& message, const char* file,
                                             int line);

} // namespace triax
