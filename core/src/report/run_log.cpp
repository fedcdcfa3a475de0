#include "report/run_log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "base/printable.hpp"
#include "report/terminal.hpp"
#include "triax/error.hpp"

namespace triax::report {

namespace {

struct LevelRow {
  LogLevel level;
  spdlog::level::level_enum theirs;
  std::string_view name;
};

constexpr std::array<LevelRow, 5> kLevels = {{{LogLevel::trace, spdlog::level::trace, "trace"},
                                              {LogLevel::debug, spdlog::level::debug, "debug"},
                                              {LogLevel::info, spdlog::level::info, "info"},
                                              {LogLevel::warn, spdlog::level::warn, "warn"},
                                              {LogLevel::error, spdlog::level::err, "error"}}};

spdlog::level::level_enum theirs(LogLevel level) {
  return kLevels[static_cast<std::size_t>(level)].theirs;
}

/// "2026-01-31 12:00:00.123 info rank 0: the line"
std::string pattern(int rank) {
  const std::string who = rank == kLauncher ? "launcher" : text("rank {}", rank);
  return text("%Y-%m-%d %H:%M:%S.%e %^%l%$ {}: %v", who);
}

constexpr const char* kPlainPattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$: %v";

class RunLog final : public Log {
 public:
  RunLog(LogLevel level, std::vector<spdlog::sink_ptr> sinks) : logger_("", sinks.begin(), sinks.end()) {
    logger_.set_level(theirs(level));
    // A run may be killed at any time, and the last lines are the ones that tell why.
    logger_.flush_on(spdlog::level::trace);
  }

  bool enabled(LogLevel level) const noexcept override { return logger_.should_log(theirs(level)); }
  void write(LogLevel level, std::string_view line) noexcept override {
    logger_.log(spdlog::source_loc{}, theirs(level), printable(line));
  }

 private:
  spdlog::logger logger_;
};

spdlog::sink_ptr stderr_sink(int rank, const OnStderr& wanted) {
  const Terminal terminal = stderr_terminal();
  const auto mode = terminal.colour ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(mode);
  const std::string line = wanted.names_rank ? pattern(rank) : kPlainPattern;
  sink->set_pattern((terminal.terminal ? kClearLine : "") + line); // over the bar, which comes back
  sink->set_level(theirs(wanted.from));
  return sink;
}

} // namespace

std::unique_ptr<Log> make_run_log(LogLevel level, const std::filesystem::path& file, int rank,
                                  const OnStderr& on_stderr) {
  std::vector<spdlog::sink_ptr> sinks = {stderr_sink(rank, on_stderr)};
  if (!file.empty()) {
    errno = 0;
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string()));
    } catch (const spdlog::spdlog_ex&) { // its text names the library's function
      throw Error("the log cannot be opened: " + std::generic_category().message(errno), file.string(),
                  "choose another folder with run.dir");
    }
    sinks.back()->set_pattern(pattern(rank));
  }
  return std::make_unique<RunLog>(level, std::move(sinks));
}

LogLevel parse_level(std::string_view level) {
  std::string known;
  for (const LevelRow& row : kLevels) {
    if (row.name == level) return row.level;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(text("\"{}\" is no log level", level), "log.level", "use one of " + known);
}

} // namespace triax::report
