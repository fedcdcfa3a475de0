// The run's log: lines to stderr and to a file per rank in the run's folder.
//
// Threads: any. Ownership: owns its sinks. Blocking: writes. Errors: Error naming a file that cannot be opened, or a
// level that is none. spdlog does the work; its headers stay in run_log.cpp.
#pragma once

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
/// "trace", "debug", "info", "warn", "error". Throws Error for any other word.
LogLevel parse_level(std::string_view level);

} // namespace triax::report
