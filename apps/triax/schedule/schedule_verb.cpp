// SPDX-License-Identifier: Apache-2.0
// triax schedule: creates, verifies and shows a schedule.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/missing_flags.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "csv/program_csv.hpp"
#include "data/output_file.hpp"
#include "os/errno_text.hpp"
#include "os/terminal.hpp"
#include "schedule/schedule_drawing.hpp"
#include "schedule/schedule_flags.hpp"
#include "schedule/timeline_comparison.hpp"
#include "schedule/verified_schedule.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

struct ScheduleCommand {
  ScheduleArguments source;
  PassFlags passes;
  std::string format = "table", output;
  bool lowered = false, measured = false;
  int cap = 0; // 0: no limit
};

/// Whether the path is a stream of this process, such as /dev/stdout. It must not be replaced: other writers use it.
bool is_stream(fs::path file) {
  constexpr int kMaxLinks = 40;
  std::error_code none;
  for (int links = 0; links < kMaxLinks; ++links) {
    const fs::path folder = fs::weakly_canonical(fs::absolute(file, none).parent_path(), none);
    if (folder.native().starts_with("/proc/")) return true;
    if (!fs::is_symlink(file, none)) return false;
    const fs::path to = fs::read_symlink(file, none);
    file = file.parent_path() / to; // `to` itself if it is absolute
  }
  return false;
}

/// Whether it is, or can become, a regular file.
bool is_replaced(const fs::path& file) {
  std::error_code unreadable;
  const fs::file_status there = fs::status(file, unreadable);
  return !is_stream(file) && (!fs::exists(there) || fs::is_regular_file(there));
}

/// Replaces a regular file atomically; writes to a stream, device or pipe.
void write(const std::string& result, const std::string& file) {
  if (file.empty()) {
    result_out() << result;
    return;
  }
  if (is_replaced(file)) return data::replace_file(file, result);
  std::ofstream out(file, std::ios::binary);
  if (!(out << result) || !out.flush()) throw Error(text("cannot be written: {}", errno_text()), file);
}

int show(const ScheduleCommand& arguments, const std::optional<PassFlags>& passes, const ScheduleSource& source,
         const VerifiedSchedule& verified) {
  if (arguments.format == "csv") {
    write(arguments.lowered ? schedule::to_csv(verified.programs) : schedule::to_csv(verified.schedule),
          arguments.output);
    return kDone;
  }
  const os::Terminal to = os::stdout_terminal();
  const bool on_terminal = arguments.output.empty() && to.terminal;
  const DrawingRequest request{arguments.format, passes, on_terminal && to.colour, on_terminal ? to.columns : 0};
  const ScheduleDrawing drawing =
      arguments.measured ? draw_measured(arguments.format, source, verified) : draw(request, source, verified);
  if (!drawing.refusals.empty()) {
    print_errors(refused(source, drawing.refusals).problems);
    return kRefused;
  }
  write(drawing.result, arguments.output);
  return kDone;
}

int run(const ScheduleCommand& arguments, const std::optional<PassFlags>& passes, const ScheduleSource& source) {
  const std::optional<int> cap = arguments.cap > 0 ? std::optional(arguments.cap) : std::nullopt;
  const VerifiedSchedule verified = verify_schedule(source, {true, cap});
  print_errors(verified.problems);
  if (verified.problems.empty()) print_notes(source);
  return verified.problems.empty() ? show(arguments, passes, source, verified) : verified.status;
}

/// Checks without creating the file, because an invalid schedule must leave no file. A regular file is first created
/// under another name in its folder.
bool can_be_written(const fs::path& file, const fs::path& folder) {
  std::error_code none;
  if (fs::is_fifo(file, none)) return ::access(file.c_str(), W_OK) == 0; // open and close would end its reader
  const int opened = ::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened >= 0) ::close(opened);
  if (opened >= 0 && !is_replaced(file)) return true;
  return (opened >= 0 || errno == ENOENT) && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

std::string names_a_file(const std::string& file) {
  std::error_code unreadable;
  const fs::path path(file), folder = path.has_parent_path() ? path.parent_path() : ".";
  if (path.empty() || fs::is_directory(path, unreadable)) return text("must name a file, got \"{}\"", file);
  if (!fs::is_directory(folder, unreadable)) return text("folder \"{}\" does not exist", folder);
  return can_be_written(path, folder) ? std::string() : text("{} cannot be written: {}", file, errno_text());
}

void add_result(CLI::App& verb, ScheduleCommand& arguments) {
  verb.add_option("--format", arguments.format,
                  "table: text drawing in units of time; csv: the actions in PyTorch's format; svg: a picture; json: "
                  "the actions with their times; trace: events for chrome://tracing and ui.perfetto.dev")
      ->check(one_of({"table", "csv", "svg", "json", "trace"}))
      ->type_name("FORMAT");
  verb.add_flag("--lowered", arguments.lowered,
                "with --format csv: also the transfers and the actions that end a step");
  verb.add_flag("--measured", arguments.measured,
                "compares the measured with the simulated timeline of a run that recorded a step (log.timeline)");
  verb.add_option("--cap", arguments.cap, "fails if more than N microbatch chunks are in flight on a rank")
      ->check(integer_in(1, 1 << 30))
      ->type_name("N");
  verb.add_option("--output", arguments.output, "writes to this file instead of stdout, and replaces an existing file")
      ->check(CLI::Validator(names_a_file, {}))
      ->type_name("FILE");
}

/// After parsing: throws if the output would replace an input.
void require_other_output(const ScheduleCommand& arguments) {
  std::error_code unknown;
  for (const std::string& input : {arguments.source.file, arguments.source.csv})
    if (!input.empty() && is_replaced(arguments.output) && fs::equivalent(input, arguments.output, unknown))
      throw CLI::ValidationError("--output",
                                 arguments.output + " is an input and would be overwritten; name another file");
}

/// After parsing: the pass times, all or none, and only for formats that show them.
std::optional<PassFlags> passes_of(const CLI::App& verb, const ScheduleCommand& arguments) {
  const auto given = [&verb](const char* name) { return verb.get_option(name)->count() > 0; };
  if (std::ranges::none_of(kPassFlags, given)) return {};
  if (arguments.measured)
    throw CLI::ValidationError("--measured", "cannot be combined with pass times: it uses the times of the run");
  if (arguments.format == "table" || arguments.format == "csv")
    throw CLI::ValidationError(
        "--format", text("{} has no time axis for the pass times; use svg, json or trace", arguments.format));
  const std::string missing = missing_passes(verb, {"--forward-ms", "--input-ms", "--weight-ms"});
  if (!missing.empty()) require_nothing({"with pass times, " + missing, missing_source(verb)});
  require_some_time(arguments.passes);
  return arguments.passes;
}

} // namespace

void add_schedule(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("schedule", "creates a schedule, verifies it and shows it");
  const auto arguments = std::make_shared<ScheduleCommand>();
  add_schedule_source(*verb, arguments->source, "the run whose schedule is shown");
  add_pass_flags(*verb, arguments->passes);
  add_result(*verb, *arguments);
  verb->callback([verb, arguments, &status] {
    if (arguments->lowered && arguments->format != "csv")
      throw CLI::ValidationError("--lowered", text("needs --format csv, not {}", arguments->format));
    require_other_output(*arguments);
    const std::optional<PassFlags> passes = passes_of(*verb, *arguments);
    if (arguments->measured && arguments->source.file.empty())
      throw CLI::ValidationError("--measured", "needs the TOML of the run that recorded a step");
    if (arguments->measured && arguments->format == "csv")
      throw CLI::ValidationError("--measured", "cannot be written as csv; use --format table, svg, json or trace");
    status = run(*arguments, passes, schedule_source(*verb, arguments->source));
  });
}

} // namespace triax::app
