// SPDX-License-Identifier: Apache-2.0
// The log that a plugin writes to. The core passes one to each plugin and decides what is printed where.
//
// Threads: write() may be called from any thread. Ownership: the core owns the log; it outlives every plugin object.
// Blocking: write() may do I/O. In the steady state of a step, use only LogLevel::trace, after enabled(). Errors: none.
#pragma once

#include <string>
#include <string_view>

#include "triax/export.hpp"
#include "triax/text.hpp"

namespace triax {

/// Levels of the log, as `log.level` names them.
enum class LogLevel { trace, debug, info, warn, error };

/// The log of a rank.
class TRIAX_API Log {
 public:
  virtual ~Log();
  /// Whether lines of a level are written; writes a line, which has no line break at its end.
  /// @{
  virtual bool enabled(LogLevel level) const noexcept = 0;
  virtual void write(LogLevel level, std::string_view line) noexcept = 0;
  /// @}

  /// Writes a line of this level, as text(pattern, arguments...).
  /// @{
  template <class... Args>
  void debug(std::string_view pattern, const Args&... arguments) {
    if (enabled(LogLevel::debug)) write(LogLevel::debug, text(pattern, arguments...));
  }
  template <class... Args>
  void info(std::string_view pattern, const Args&... arguments) {
    if (enabled(LogLevel::info)) write(LogLevel::info, text(pattern, arguments...));
  }
  template <class... Args>
  void warn(std::string_view pattern, const Args&... arguments) {
    if (enabled(LogLevel::warn)) write(LogLevel::warn, text(pattern, arguments...));
  }
  template <class... Args>
  void error(std::string_view pattern, const Args&... arguments) {
    if (enabled(LogLevel::error)) write(LogLevel::error, text(pattern, arguments...));
  }
  /// @}
};

/// A log that drops every line; for tests and for objects created outside a run.
TRIAX_API Log& null_log();

} // namespace triax
