// The run's log: lines to stderr and to a file per rank in the run's folder.
//
// Threads: any. Ownership: owns its sinks. spdlog does the work; its headers stay in run_log.cpp.
#pragma once

#include <filesystem>
#include <memory>

#include "triax/log.hpp"

namespace triax::report {

/// The file gets lines from `level` on, stderr those of them from `on_stderr` on. `file` may be empty: stderr only.
std::unique_ptr<Log> make_run_log(LogLevel level, const std::filesystem::path& file, int rank,
                                  LogLevel on_stderr = LogLevel::trace);
/// "trace", "debug", "info", "warn", "error". Throws Error for any other word.
LogLevel parse_level(std::string_view level);

} // namespace triax::report
