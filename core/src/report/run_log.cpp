// SPDX-License-Identifier: Apache-2.0
#include "report/run_log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/base_sink.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "base/printable.hpp"
#include "os/append_file.hpp"
#include "os/stderr_output.hpp"
#include "os/terminal.hpp"
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

/// On stderr only, because writing the log failed.
void print_log_problem(const std::string& problem) {
  if (!os::stderr_accepts()) return;
  const std::string line = (os::stderr_terminal().terminal ? os::kClearLine : "") + printable(problem) + "\n";
  std::fputs(line.c_str(), stderr);
}

/// Writes each line at once: a run may be killed at any time, and the last lines contain the reason.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(const std::filesystem::path& file)
      : file_(file, [](const Error& problem, bool lost) {
          if (lost) print_log_problem(Error(problem.message(), "log " + problem.where(), problem.hint()).what());
        }) {}

  /// Any thread.
  std::int64_t lost_lines() const noexcept { return lost_lines_.load(); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view written(line.data(), line.size());
    if (written.ends_with('\n')) written.remove_suffix(1); // added by the formatter
    file_.append(written, "a line");
    lost_lines_.store(file_.lost_lines());
  }
  void flush_() override {}

 private:
  os::AppendFile file_;
  std::atomic<std::int64_t> lost_lines_{0};
};

/// Leaves out lines that stderr does not take: the file has them.
class StderrSink final : public spdlog::sinks::ansicolor_stderr_sink_mt {
  using Base = spdlog::sinks::ansicolor_stderr_sink_mt;

 public:
  explicit StderrSink(spdlog::color_mode mode) : Base(mode) {}

  void log(const spdlog::details::log_msg& message) override {
    if (!os::stderr_accepts()) {
      ++left_out_;
      return;
    }
    if (const std::int64_t left_out = left_out_.exchange(0); left_out > 0)
      print_log_problem(text("{} lines of the log are not here, because stderr took no output", left_out));
    Base::log(message);
  }

 private:
  std::atomic<std::int64_t> left_out_{0};
};

class RunLog final : public Log {
 public:
  RunLog(LogLevel level, const std::vector<spdlog::sink_ptr>& sinks, std::shared_ptr<const FileSink> file)
      : logger_("", sinks.begin(), sinks.end()), file_(std::move(file)) {
    logger_.set_level(theirs(level));
    logger_.flush_on(spdlog::level::trace);
    logger_.set_error_handler([](const std::string& why) { print_log_problem("a line of the log is lost: " + why); });
  }

  bool enabled(LogLevel level) const noexcept override { return logger_.should_log(theirs(level)); }
  void write(LogLevel level, std::string_view line) noexcept override {
    logger_.log(spdlog::source_loc{}, theirs(level), printable(line));
  }
  std::int64_t lost_lines() const noexcept { return file_ ? file_->lost_lines() : 0; }

 private:
  spdlog::logger logger_;
  std::shared_ptr<const FileSink> file_; // may be null
};

spdlog::sink_ptr stderr_sink(int rank, const OnStderr& wanted) {
  const os::Terminal terminal = os::stderr_terminal();
  const auto mode = terminal.colour ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto sink = std::make_shared<StderrSink>(mode);
  const std::string line = wanted.names_rank ? pattern(rank) : kPlainPattern;
  sink->set_pattern((terminal.terminal ? os::kClearLine : "") + line); // clears the progress bar, which reappears
  sink->set_level(theirs(wanted.from));
  return sink;
}

} // namespace

std::unique_ptr<Log> make_run_log(LogLevel level, const std::filesystem::path& file, int rank,
                                  const OnStderr& on_stderr) {
  std::vector<spdlog::sink_ptr> sinks = {stderr_sink(rank, on_stderr)};
  std::shared_ptr<FileSink> in_file;
  if (!file.empty()) {
    try {
      in_file = std::make_shared<FileSink>(file);
    } catch (const Error& error) {
      throw Error("the log " + error.message(), error.where(), "choose another folder with run.dir");
    }
    in_file->set_pattern(pattern(rank));
    sinks.push_back(in_file);
  }
  return std::make_unique<RunLog>(level, sinks, in_file);
}

std::int64_t lost_lines(const Log& log) noexcept {
  const auto* made_here = dynamic_cast<const RunLog*>(&log);
  return made_here ? made_here->lost_lines() : 0;
}

LogLevel parse_level(std::string_view level) {
  std::string known;
  for (const LevelRow& row : kLevels) {
    if (row.name == level) return row.level;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(text("invalid log level \"{}\"", level), "log.level", "use one of " + known);
}

} // namespace triax::report
