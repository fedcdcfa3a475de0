// triax schedule: makes a schedule, proves it and shows it; nothing is trained.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "proved_schedule.hpp"
#include "report/schedule_table.hpp"
#include "schedule/csv.hpp"
#include "schedule/timing.hpp"
#include "schedule_flags.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxDrawnSlots = 1 << 24; // of all ranks together

struct Arguments {
  ScheduleArguments source;
  std::string format = "table", output;
  int cap = 0; // 0: none
};

std::string title(const ScheduleSource& source) {
  const PipelineShape& shape = source.shape;
  return text("{}: p = {}, m = {}, v = {}; F takes one slot, B two\n", source.scheduler.name, shape.pipeline,
              shape.microbatches, shape.chunks);
}

void write(const std::string& result, const std::string& file) {
  if (file.empty()) {
    std::cout << result;
    return;
  }
  std::ofstream out(file, std::ios::binary);
  if (!(out << result) || !out.flush()) throw Error(text("cannot be written: {}", std::strerror(errno)), file);
}

std::int64_t last_of(const std::vector<std::vector<std::int64_t>>& ends) {
  std::int64_t last = 0;
  for (const auto& row : ends) last = row.empty() ? last : std::max(last, row.back());
  return last;
}

int show(const Arguments& arguments, const ScheduleSource& source, const Schedule& schedule) {
  if (arguments.format == "csv") {
    write(schedule::to_csv(schedule), arguments.output);
    return kDone;
  }
  const std::vector<std::vector<std::int64_t>> ends = schedule::end_times(schedule);
  const std::int64_t slots = last_of(ends);
  if (slots * schedule.ranks() > kMaxDrawnSlots) {
    const Support answer = Support::no("a table of {} ranks and {} slots is too large to read", schedule.ranks(), slots)
                               .hint("use --format csv, or smaller sizes");
    print_refusals(refused(source, answer).problems);
    return kRefused;
  }
  write(title(source) + report::schedule_table(schedule, ends), arguments.output);
  return kDone;
}

int run(const Arguments& arguments, const ScheduleSource& source) {
  const std::optional<int> cap = arguments.cap > 0 ? std::optional(arguments.cap) : std::nullopt;
  const ProvedSchedule proved = prove(source, {true, cap});
  print_refusals(proved.problems);
  return proved.problems.empty() ? show(arguments, source, proved.schedule) : proved.status;
}

std::string names_a_file(const std::string& file) {
  std::error_code unreadable;
  const fs::path path(file), folder = path.has_parent_path() ? path.parent_path() : ".";
  if (path.empty() || fs::is_directory(path, unreadable)) return "must name a file, not \"" + file + "\"";
  return fs::is_directory(folder, unreadable) ? std::string() : "there is no folder " + folder.string();
}

void add_result(CLI::App& verb, Arguments& arguments) {
  verb.add_option("--format", arguments.format, "table: drawn in slots of time; csv: the actions, PyTorch's form")
      ->check(CLI::IsMember({"table", "csv"}))
      ->type_name("FORMAT");
  verb.add_option("--cap", arguments.cap, "refuses ranks that keep more microbatches at once, counted per stage")
      ->check(CLI::Range(1, 1 << 30))
      ->type_name("N");
  verb.add_option("--output", arguments.output, "writes there, replacing what is there, instead of stdout")
      ->check(CLI::Validator(names_a_file, {}))
      ->type_name("FILE");
}

} // namespace

void add_schedule(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("schedule", "makes a schedule, proves it and shows it");
  const auto arguments = std::make_shared<Arguments>();
  add_schedule_source(*verb, arguments->source, "the run whose schedule is shown");
  add_result(*verb, *arguments);
  verb->callback([verb, arguments, &status] { status = run(*arguments, schedule_source(*verb, arguments->source)); });
}

} // namespace triax::app
