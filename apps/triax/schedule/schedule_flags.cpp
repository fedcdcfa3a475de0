// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule_flags.hpp"

#include <optional>

#include "common/flag_checks.hpp"
#include "common/missing_flags.hpp"
#include "common/verbs.hpp"
#include "schedule/lower.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

/// A flag, the key of a run with the same meaning, and where the flag is allowed.
struct SourceFlag {
  const char *name, *key;
  bool required;  // with --scheduler
  bool with_file; // allowed with a file, to compare it
};
constexpr SourceFlag kSourceFlags[] = {{"--scheduler", "schedule.plugin", true, false},
                                       {"--pipeline", "parallel.pipeline", true, true},
                                       {"--microbatches", "batch.global", true, true},
                                       {"--chunks", "parallel.chunks", false, true},
                                       {"--path", "plugins.path", false, false}};

bool given(const CLI::App& verb, const char* name) {
  return verb.get_option(name)->count() > 0;
}

ScheduleSource of_file(const CLI::App& verb, const ScheduleArguments& arguments) {
  constexpr const char* kNotWithFile = "cannot be combined with --file";
  if (given(verb, "RUN.toml")) throw CLI::ValidationError("RUN.toml", kNotWithFile);
  if (!arguments.overrides.empty()) throw CLI::ValidationError("--set", kNotWithFile);
  for (const SourceFlag& flag : kSourceFlags)
    if (!flag.with_file && given(verb, flag.name)) throw CLI::ValidationError(flag.name, kNotWithFile);
  const auto flag_text = [&](const char* name, int value) {
    return given(verb, name) ? std::optional(value) : std::nullopt;
  };
  const PipelineShape& shape = arguments.flags.shape;
  return source_from_file(arguments.csv, {flag_text("--pipeline", shape.pipeline), flag_text("--chunks", shape.chunks),
                                          flag_text("--microbatches", shape.microbatches)});
}

} // namespace

void add_schedule_source(CLI::App& verb, ScheduleArguments& arguments, const char* run_doc) {
  ScheduleFlags& flags = arguments.flags;
  const auto size = [&verb](const char* name, int& value, int most, const char* doc) {
    verb.add_option(name, value, doc)->check(integer_in(1, most))->type_name("N");
  };
  verb.add_option("RUN.toml", arguments.file, run_doc);
  add_overrides(verb, arguments.overrides);
  verb.add_option("--scheduler", flags.scheduler, "scheduler to use instead of RUN.toml")->type_name("SCHEDULER");
  size("--pipeline", flags.shape.pipeline, schedule::kMaxRanks, "p: pipeline ranks");
  size("--microbatches", flags.shape.microbatches, 16777216, "m: microbatches per step");
  size("--chunks", flags.shape.chunks, 65536, "v: model chunks per rank [1]");
  verb.add_option("--file", arguments.csv, "CSV of actions to use instead of RUN.toml, one line per pipeline rank")
      ->type_name("F.csv");
  verb.add_option("--path", flags.folders, "folder to search for the scheduler first")
      ->check(CLI::ExistingDirectory)
      ->expected(1)
      ->take_all();
}

std::string missing_source(const CLI::App& verb) {
  std::vector<std::string> missing;
  if (given(verb, "--file") || given(verb, "RUN.toml")) return {};
  for (const SourceFlag& flag : kSourceFlags)
    if (flag.required && !given(verb, flag.name)) missing.emplace_back(flag.name);
  return missing.empty() ? std::string() : "without RUN.toml or --file, " + required_text(missing);
}

ScheduleSource schedule_source(const CLI::App& verb, const ScheduleArguments& arguments) {
  if (given(verb, "--file")) return of_file(verb, arguments);
  const bool has_run = given(verb, "RUN.toml");
  for (const SourceFlag& flag : kSourceFlags) {
    if (has_run && given(verb, flag.name))
      throw CLI::ValidationError(flag.name, text("cannot be combined with RUN.toml; use --set {}=...", flag.key));
  }
  require_nothing({missing_source(verb)});
  return has_run ? source_from_run(arguments.file, arguments.overrides)
                 : source_from_flags(arguments.flags, arguments.overrides);
}

} // namespace triax::app
