// triax schedule: makes a schedule, proves it and shows it; nothing is trained.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "plugin/asking.hpp"
#include "report/schedule_table.hpp"
#include "schedule/csv.hpp"
#include "schedule/lower.hpp"
#include "schedule/timing.hpp"
#include "schedule/verify.hpp"
#include "schedule_source.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxDrawnSlots = 1 << 24; // of all ranks together
constexpr std::size_t kShownFaults = 20;         // a slip of a scheduler is often the same on every rank

struct Arguments {
  std::string file;
  ScheduleFlags flags;
  std::vector<config::Override> overrides;
  std::string format = "table", output;
  int cap = 0; // 0: none
};

int refuse(const ScheduleSource& source, const Support& answer) {
  print_refusals({config::refusal(answer, source.values)});
  return kRefused;
}

Support size_of(const PipelineShape& shape) {
  if (std::int64_t{shape.pipeline} * shape.chunks * shape.microbatches <= schedule::kMostActions) return Support::yes();
  return Support::no("p = {} x v = {} x m = {} is more than {} actions of each kind", shape.pipeline, shape.chunks,
                     shape.microbatches, schedule::kMostActions)
      .hint("use smaller sizes");
}

int print_faults(const ScheduleSource& source, const std::vector<Support>& faults) {
  for (std::size_t at = 0; at < std::min(faults.size(), kShownFaults); ++at) {
    const Support named =
        Support::no("{}: {}", source.scheduler.name, faults[at].reason()).hint("{}", faults[at].hint());
    print_refusals({config::refusal(named, source.values)});
  }
  if (faults.size() > kShownFaults) print_refusals({{text("... and {} more", faults.size() - kShownFaults)}});
  return kFailed;
}

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

/// The rows, then the programs made of them, for communicators that promise the least.
std::vector<Support> faults_of(const Schedule& schedule, const PipelineShape& shape, std::optional<int> cap) {
  std::vector<Support> faults = schedule::verify(schedule, shape);
  if (!faults.empty()) return faults;
  const schedule::Assumptions least{CommTraits::Order::serial, CommTraits::Send::rendezvous,
                                    CommTraits::Post::blocking};
  faults = schedule::verify(schedule::lower(schedule, shape), {shape, false, cap}, least);
  std::ranges::move(schedule::verify(schedule::lower_forward_only(schedule, shape), {shape, true}, least),
                    std::back_inserter(faults));
  return faults;
}

int show(const Arguments& arguments, const ScheduleSource& source, const Schedule& schedule) {
  const std::optional<int> cap = arguments.cap > 0 ? std::optional(arguments.cap) : std::nullopt;
  const std::vector<Support> faults = faults_of(schedule, source.shape, cap);
  if (!faults.empty()) return print_faults(source, faults);
  if (arguments.format == "csv") {
    write(schedule::to_csv(schedule), arguments.output);
    return kDone;
  }
  const std::vector<std::vector<std::int64_t>> ends = schedule::end_times(schedule);
  const std::int64_t slots = last_of(ends);
  if (slots * schedule.ranks() > kMaxDrawnSlots)
    return refuse(source, Support::no("a table of {} ranks and {} slots is too large to read", schedule.ranks(), slots)
                              .hint("use --format csv, or smaller sizes"));
  write(title(source) + report::schedule_table(schedule, ends), arguments.output);
  return kDone;
}

int run(const Arguments& arguments, bool has_run) {
  const ScheduleSource source = has_run ? source_from_run(arguments.file, arguments.overrides)
                                        : source_from_flags(arguments.flags, arguments.overrides);
  print_refusals(source.refusals);
  if (!source.refusals.empty()) return kRefused;
  if (const Support answer = size_of(source.shape); !answer) return refuse(source, answer);
  const PluginContext context{source.scheduler.options, null_log(), source.layout};
  const std::string& name = source.scheduler.name;
  Schedule schedule;
  try {
    const auto scheduler = plugin::create<Scheduler>(*source.scheduler.library, context);
    const Support answer = plugin::asking(name, "supports", [&] { return scheduler->supports(source.shape); });
    if (!answer) return refuse(source, answer);
    schedule = plugin::asking(name, "rows", [&] { return scheduler->rows(source.shape); });
  } catch (const Error& error) { // there is nothing to prove
    print_refusals({{error.what()}});
    return kRefused;
  }
  return show(arguments, source, schedule);
}

std::string names_a_file(const std::string& file) {
  std::error_code unreadable;
  const fs::path path(file), folder = path.has_parent_path() ? path.parent_path() : ".";
  if (path.empty() || fs::is_directory(path, unreadable)) return "must name a file, not \"" + file + "\"";
  return fs::is_directory(folder, unreadable) ? std::string() : "there is no folder " + folder.string();
}

/// What only one of a run and flags can tell, and the run's key of the same meaning.
struct SourceFlag {
  const char *name, *key;
  bool required; // without a run
};
constexpr SourceFlag kSourceFlags[] = {{"--scheduler", "schedule.plugin", true},
                                       {"--pipeline", "parallel.pipeline", true},
                                       {"--microbatches", "batch.global", true},
                                       {"--chunks", "parallel.chunks", false},
                                       {"--path", "plugins.path", false}};

void check_source(const CLI::App& verb) {
  const bool has_run = verb.get_option("RUN.toml")->count() > 0;
  for (const SourceFlag& flag : kSourceFlags) {
    const bool given = verb.get_option(flag.name)->count() > 0;
    if (has_run && given)
      throw CLI::ValidationError(flag.name, text("the run has its own; --set {}=... changes it", flag.key));
    if (!has_run && !given && flag.required) throw CLI::RequiredError(text("without RUN.toml, {}", flag.name));
  }
}

void add_source(CLI::App& verb, Arguments& arguments) {
  ScheduleFlags& flags = arguments.flags;
  const auto size = [&verb](const char* name, int& value, int most, const char* doc) {
    verb.add_option(name, value, doc)->check(CLI::Range(1, most))->type_name("N");
  };
  verb.add_option("RUN.toml", arguments.file, "the run whose schedule is shown");
  add_overrides(verb, arguments.overrides);
  verb.add_option("--scheduler", flags.scheduler, "instead of a run: a scheduler")->type_name("NAME");
  size("--pipeline", flags.shape.pipeline, schedule::kMostRanks, "p: pipeline ranks");
  size("--microbatches", flags.shape.microbatches, 16777216, "m: microbatches of a step");
  size("--chunks", flags.shape.chunks, 65536, "v: model chunks per rank; 1 unless given");
  verb.add_option("--path", flags.folders, "a folder to look for the scheduler in first")
      ->check(CLI::ExistingDirectory)
      ->expected(1)
      ->take_all();
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
  add_source(*verb, *arguments);
  add_result(*verb, *arguments);
  verb->callback([verb, arguments, &status] {
    check_source(*verb);
    status = run(*arguments, verb->get_option("RUN.toml")->count() > 0);
  });
}

} // namespace triax::app
