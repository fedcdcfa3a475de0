// SPDX-License-Identifier: Apache-2.0
// The run's log: lines to stderr and to a file per rank in the run's folder.
//
// Threads: any. Ownership: owns its sinks. Blocking: writes. Errors: Error naming a file that cannot be opened, or an
// unknown level. A line that the file does not take is counted, and its cause is on stderr once: a log never ends a
// run. spdlog does the work; its headers stay in run_log.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "triax/log.hpp"

namespace triax::report {

/// What of a log goes to stderr.
struct OnStderr {
  LogLevel from = LogLevel::trace;
  bool names_rank = true; // not where a launcher puts the rank before each line
};

inline constexpr int kLauncher = -1; // in place of a rank

/// The file gets lines from `level` on, stderr those of them that `on_stderr` says. `file` may be empty: stderr only.
std::unique_ptr<Log> make_run_log(LogLevel level, const std::filesystem::path& file, int rank,
                                  const OnStderr& on_stderr = {});
/// Lines that its file did not take; 0 for a log that make_run_log() did not make. Any thread.
std::int64_t lost_lines(const Log& log) noexcept;
/// "trace", "debug", "info", "warn", "error". Throws Error for any other word.
LogLevel parse_level(std::string_view level);

} // namespace triax::report
