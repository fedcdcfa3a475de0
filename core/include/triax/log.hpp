// The log a plugin writes to. The core hands one to each plugin; what it prints where is the core's business.
//
// Threads: write() may be called from any thread. Ownership: the core owns the log; it outlives every plugin object.
// Blocking: write() may do I/O, so it is not for the steady state of a step (use LogLevel::trace behind enabled()).
#pragma once

#include <string>
#include <string_view>

#include "triax/export.hpp"
#include "triax/text.hpp"

namespace triax {

enum class LogLevel { trace, debug, info, warn, error };

class TRIAX_API Log {
 public:
  virtual ~Log();
  virtual bool enabled(LogLevel level) const noexcept = 0;
  virtual void write(LogLevel level, std::string_view line) noexcept = 0;

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
};

/// Drops everything; for tests and for objects made outside a run.
TRIAX_API Log& null_log();

} // namespace triax
