// SPDX-License-Identifier: Apache-2.0
// The run's log: lines to stderr and to one file per rank in the run's folder.
//
// Threads: any. Ownership: owns its sinks. Blocking: writes. Errors: Error for a file that cannot be opened, or an
// unknown level. A line that cannot be written is counted, and stderr gets the cause once: a log never ends a run.
// Implemented with spdlog, whose headers are only included in run_log.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "triax/log.hpp"

namespace triax::report {

/// Which lines go to stderr.
struct OnStderr {
  LogLevel from = LogLevel::trace;
  bool names_rank = true; // false if a launcher puts the rank before each line
};

inline constexpr int kLauncher = -1; // in place of a rank

/// The file gets lines from `level` on; stderr gets those of them that `on_stderr` selects. Empty `file`: only stderr.
std::unique_ptr<Log> make_run_log(LogLevel level, const std::filesystem::path& file, int rank,
                                  const OnStderr& on_stderr = {});
/// Lines that could not be written to the log's file; 0 for logs that make_run_log() did not create. Any thread.
std::int64_t lost_lines(const Log& log) noexcept;
/// "trace", "debug", "info", "warn", "error". Throws Error for other words.
LogLevel parse_level(std::string_view level);

} // namespace triax::report
