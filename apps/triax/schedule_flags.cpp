#include "schedule_flags.hpp"

#include "schedule/lower.hpp"
#include "triax/text.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

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

} // namespace

void add_schedule_source(CLI::App& verb, ScheduleArguments& arguments, const char* run_doc) {
  ScheduleFlags& flags = arguments.flags;
  const auto size = [&verb](const char* name, int& value, int most, const char* doc) {
    verb.add_option(name, value, doc)->check(CLI::Range(1, most))->type_name("N");
  };
  verb.add_option("RUN.toml", arguments.file, run_doc);
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

ScheduleSource schedule_source(const CLI::App& verb, const ScheduleArguments& arguments) {
  const bool has_run = verb.get_option("RUN.toml")->count() > 0;
  for (const SourceFlag& flag : kSourceFlags) {
    const bool given = verb.get_option(flag.name)->count() > 0;
    if (has_run && given)
      throw CLI::ValidationError(flag.name, text("the run has its own; --set {}=... changes it", flag.key));
    if (!has_run && !given && flag.required) throw CLI::RequiredError(text("without RUN.toml, {}", flag.name));
  }
  return has_run ? source_from_run(arguments.file, arguments.overrides)
                 : source_from_flags(arguments.flags, arguments.overrides);
}

} // namespace triax::app
