// SPDX-License-Identifier: Apache-2.0
// triax schedule: creates, verifies and shows a schedule.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/missing_flags.hpp"
#include "common/output_flag.hpp"
#include "common/verbs.hpp"
#include "csv/program_csv.hpp"
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

int show(const ScheduleCommand& arguments, const std::optional<PassFlags>& passes, const ScheduleSource& source,
         const VerifiedSchedule& verified) {
  if (arguments.format == "csv") {
    write_output(arguments.lowered ? schedule::to_csv(verified.programs) : schedule::to_csv(verified.schedule),
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
  write_output(drawing.result, arguments.output);
  return kDone;
}

int run(const ScheduleCommand& arguments, const std::optional<PassFlags>& passes, const ScheduleSource& source) {
  const std::optional<int> cap = arguments.cap > 0 ? std::optional(arguments.cap) : std::nullopt;
  const VerifiedSchedule verified = verify_schedule(source, {true, cap, passes && passes->recomputes()});
  print_errors(verified.problems);
  if (verified.problems.empty()) print_notes(source);
  return verified.problems.empty() ? show(arguments, passes, source, verified) : verified.status;
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
      ->check(CLI::Validator(output_file_error, {}))
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
  if (std::ranges::none_of(kPassFlags, given) && !given("--recompute-ms")) return {};
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
