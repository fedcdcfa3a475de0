// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule_flags.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>

#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/missing_flags.hpp"
#include "common/verbs.hpp"
#include "schedule/lower.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

/// A flag, the key of a run with the same meaning, and where the flag is allowed. Without a run, there is a microbatch
/// for each sample of the global batch.
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

/// How a scheduler spells the number of microbatches.
constexpr std::string_view kMicrobatches = "batch.global / (parallel.data x batch.micro)";

bool is_of_key(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
}

/// Replaces `from` where it is a whole key.
void replace_key(std::string& in, std::string_view from, std::string_view to) {
  for (std::size_t at = in.find(from); at != std::string::npos; at = in.find(from, at)) {
    const std::size_t end = at + from.size();
    const bool is_whole = (at == 0 || !is_of_key(in[at - 1])) && (end == in.size() || !is_of_key(in[end]));
    if (is_whole) in.replace(at, from.size(), to);
    at += is_whole ? to.size() : from.size();
  }
}

std::string in_flags(std::string message) {
  replace_key(message, kMicrobatches, "--microbatches");
  for (const SourceFlag& flag : kSourceFlags) replace_key(message, flag.key, flag.name);
  return message;
}

/// Keys of the scheduler itself are set by --set. The others have no flag: they have no part in the schedule.
std::vector<std::string> flags_of(const std::vector<std::string>& keys) {
  std::vector<std::string> out;
  for (const std::string& key : keys) {
    const auto flag = std::ranges::find(kSourceFlags, key, [](const SourceFlag& of) { return std::string(of.key); });
    if (flag != std::end(kSourceFlags)) {
      out.emplace_back(flag->name);
    } else if (key.starts_with("schedule.")) {
      out.push_back(key);
    }
  }
  return out;
}

/// "use --set schedule.group=4" for "use schedule.group 4"
std::string with_set(std::string hint, const plugin::Library* scheduler) {
  if (!scheduler) return hint;
  for (const triax_option& option : scheduler->options) {
    const std::string key = text("schedule.{}", option.name);
    for (const char* before : {" ", "\n"})
      for (std::size_t at = hint.find(before + key + " "); at != std::string::npos; at = hint.find(before + key + " "))
        hint.replace(at + 1, key.size() + 1, text("--set {}=", key));
  }
  return hint;
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
  repeated(verb.add_option("--path", flags.folders, "folder to search for the scheduler first")
               ->check(existing_folder())
               ->expected(1));
}

std::string missing_source(const CLI::App& verb) {
  std::vector<std::string> missing;
  if (given(verb, "--file") || given(verb, "RUN.toml")) return {};
  for (const SourceFlag& flag : kSourceFlags)
    if (flag.required && !given(verb, flag.name)) missing.emplace_back(flag.name);
  return missing.empty() ? std::string() : required_text(missing) + " unless RUN.toml or --file is given";
}

ScheduleSource schedule_source(const CLI::App& verb, const ScheduleArguments& arguments) {
  if (given(verb, "--file")) return of_file(verb, arguments);
  const bool has_run = given(verb, "RUN.toml");
  for (const SourceFlag& flag : kSourceFlags) {
    if (has_run && given(verb, flag.name))
      throw CLI::ValidationError(flag.name, text("cannot be combined with RUN.toml; use --set {}=...", flag.key));
  }
  require_nothing({missing_source(verb)});
  if (has_run) return source_from_run(arguments.file, arguments.overrides);
  ScheduleFlags flags = arguments.flags;
  flags.has_chunks = given(verb, "--chunks");
  return source_from_flags(flags, arguments.overrides);
}

config::Diagnostic diagnose(const ScheduleSource& source, const Refusal& refusal) {
  if (!source.is_from_flags) return config::diagnose(refusal, source.values);
  const Refusal in_words{refusal.code, flags_of(refusal.keys), in_flags(refusal.message),
                         with_set(in_flags(refusal.hint), source.scheduler.library)};
  std::vector<config::ResolvedValue> defaults;
  std::ranges::copy_if(source.values, std::back_inserter(defaults),
                       [](const config::ResolvedValue& value) { return value.at.file.empty(); });
  config::Diagnostic out = config::diagnose(in_words, defaults);
  if (in_words.keys.empty()) return out;
  const std::string& key = in_words.keys.front();
  const auto value = std::ranges::find(source.values, key, &config::ResolvedValue::key);
  if (value == source.values.end() || value->at.file.empty()) return out;
  out.at = value->at;
  if (!in_words.message.starts_with(out.at.file + " ")) out.text = text("{}: {}", out.at.file, out.text);
  return out;
}

} // namespace triax::app
