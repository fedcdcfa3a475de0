// SPDX-License-Identifier: Apache-2.0
// Errors, and answers to capability queries.
//
// Threads: values, any thread. Ownership: values own their text. Blocking: never.
// An Error says what went wrong, where, and what to do next. The core and plugins may throw it anywhere. The main
// function of each rank catches it and logs it once. A Refusals object says, before any work starts, whether something
// is supported: it is empty, or contains every reason why not. A reason has a code, keys, a message and a hint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

  /// The parts of what().
  /// @{
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }
  /// @}

 private:
  std::string message_;
  std::string where_;
  std::string hint_;
};

/// The kind of an error that is found before a run starts. docs/errors.md says what each kind means.
enum class ErrorCode : std::uint32_t {
  kUnsupported = 1,
  kNotDivisible,
  kOutOfRange,
  kWrongType,
  kInvalidValue,
  kMalformed,
  kMissing,
  kUnknownKey,
  kUnknownPlugin,
  kConflict,
  kDuplicate,
  kTooLarge,
  kNotFound,
  kNotReadable,
  kNotWritable,
  kAlreadyExists,
  kIncompatible,
  kOutOfMemory,
  kNoDevice,
  kInvalidSchedule,
  kPluginFailed,
};

/// A row of the table of all codes.
struct ErrorCodeInfo {
  ErrorCode code;
  std::string_view name; // "not-divisible", as in the output of --json
  std::string_view meaning, action;
};
/// All codes, in the order of their numbers.
TRIAX_API std::span<const ErrorCodeInfo> error_codes();
/// The name of a code, such as "not-divisible".
TRIAX_API std::string_view name_of(ErrorCode code);
/// The code with this name, or kUnsupported.
TRIAX_API ErrorCode error_code_of(std::string_view name);

/// One reason why something cannot run.
///
/// `keys`: the configuration keys that the reader can change, in full ("model.heads"); the most important one first. A
/// communicator names its options "comm.NAME", in whatever table they are. The core adds the file and line of each.
/// Without keys, the core names the plugin that refused. `message`: what is
/// wrong, with the values. `hint`: the next step, as one line; may be empty.
struct Refusal {
  ErrorCode code = ErrorCode::kUnsupported;
  std::vector<std::string> keys = {};
  std::string message = {};
  std::string hint = {};

  /// Sets the hint to text(pattern, arguments...) and returns this refusal.
  template <class... Args>
  Refusal&& with_hint(std::string_view pattern, const Args&... arguments) && {
    hint = text(pattern, arguments...);
    return static_cast<Refusal&&>(*this);
  }
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// make_refusal(ErrorCode::kNotDivisible, {"model.heads", "parallel.tensor"},
///              "model.heads = {} is not divisible by parallel.tensor = {}", heads, tensor).with_hint("use heads {}",
///              near)
template <class... Args>
Refusal make_refusal(ErrorCode code, std::vector<std::string> keys, std::string_view pattern,
                     const Args&... arguments) {
  return {code, static_cast<std::vector<std::string>&&>(keys), text(pattern, arguments...), {}};
}

/// All reasons why something cannot run. Empty: it is supported. Report every reason, not only the first.
class Refusals {
 public:
  Refusals() = default;
  Refusals(Refusal refusal) { add(static_cast<Refusal&&>(refusal)); } // NOLINT(google-explicit-constructor)

  /// Adds a reason, or all reasons of `others`.
  /// @{
  void add(Refusal refusal) { list_.push_back(static_cast<Refusal&&>(refusal)); }
  void add(const Refusals& others) { list_.insert(list_.end(), others.begin(), others.end()); }
  /// @}

  /// The reasons, as a list.
  /// @{
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  const Refusal& front() const { return list_.front(); }
  const Refusal& operator[](std::size_t i) const { return list_[i]; }
  std::vector<Refusal>::const_iterator begin() const { return list_.begin(); }
  std::vector<Refusal>::const_iterator end() const { return list_.end(); }
  std::vector<Refusal>::iterator begin() { return list_.begin(); }
  std::vector<Refusal>::iterator end() { return list_.end(); }
  /// @}

 private:
  std::vector<Refusal> list_;
};

/// An Error with all messages, and the hint of the first refusal. `refusals` may not be empty.
TRIAX_API Error to_error(const Refusals& refusals, std::string where = {});

/// Throws Error(text(pattern, ...)) unless `condition` holds: for preconditions of a function.
#define TRIAX_REQUIRE(condition, ...)                                                                        \
  do {                                                                                                       \
    if (!(condition)) ::triax::fail_requirement(#condition, ::triax::text(__VA_ARGS__), __FILE__, __LINE__); \
  } while (false)

/// Throws the Error of TRIAX_REQUIRE.
[[noreturn]] TRIAX_API void fail_requirement(const char* condition, const std::string& message, const char* file,
                                             int line);

} // namespace triax
