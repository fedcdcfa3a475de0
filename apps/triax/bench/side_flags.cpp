// SPDX-License-Identifier: Apache-2.0
#include "bench/side_flags.hpp"

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/output_flag.hpp"
#include "common/result_out.hpp"
#include "common/setting_flag.hpp"
#include "common/verbs.hpp"
#include "plugin/loader.hpp"

namespace triax::app {

void add_side_flags(CLI::App& verb, SideFlags& flags, const SideWords& words) {
  const std::string what = words.what;
  verb.add_option("--plugin", flags.plugin, what + " to measure: its name, or the path of its file; side A")
      ->type_name(words.value)
      ->required();
  verb.add_option("--vs", flags.versus, what + " to compare it with; side B")
      ->type_name(words.value)
      ->check(not_empty());
  add_settings(verb, "--set", flags.both, "sets an option of both sides", words.table);
  add_settings(verb, "--set-a", flags.of_a, "sets an option of side A", words.table);
  add_settings(verb, "--set-b", flags.of_b, "sets an option of side B, which is --plugin again without --vs",
               words.table);
  verb.add_flag("--same", flags.same, "allows equal sides, to see how much this machine varies");
  verb.add_option("--rounds", flags.rounds, "turns of one side, or rounds A B B A of two [10]")
      ->type_name("N")
      ->check(integer_in(1, 1000));
  verb.add_option("--turn-ms", flags.turn_ms, "shortest duration of a turn, in which calls are repeated [10]")
      ->type_name("MS")
      ->check(number_in(0, 10'000));
  verb.add_flag("--json", flags.json, "prints the result as one JSON object");
  verb.add_option("--output", flags.output, "also writes the JSON object to this file")
      ->type_name("FILE")
      ->check(not_empty());
}

std::vector<bench::Side> load_sides(const SideFlags& flags, const SideWords& words, plugin::FirstLoad first_load,
                                    Refusals& refusals) {
  if (!flags.compares() && !flags.of_a.empty())
    refusals.add(make_refusal(ErrorCode::kConflict, {"--set-a"}, "--set-a needs a side B")
                     .with_hint("use --set for one side, or add --vs PLUGIN or --set-b {}.KEY=VALUE", words.table));
  if (first_load == plugin::FirstLoad::probed) refusals.add(plugin::check_environment());
  std::vector<bench::Side> out;
  const auto load = [&](const char* flag, const std::string& name, const std::vector<config::Override>& own) {
    std::vector<config::Override> settings = flags.both;
    settings.insert(settings.end(), own.begin(), own.end());
    out.push_back(bench::load_side({flag, name, words.kind, words.table, settings}, first_load, refusals));
  };
  load("--plugin", flags.plugin, flags.of_a);
  if (flags.compares() && out.front().choice.library) // else its error would be repeated
    load(flags.versus.empty() ? "--plugin" : "--vs", flags.versus.empty() ? flags.plugin : flags.versus, flags.of_b);
  return out;
}

void append_side_flags(const SideFlags& flags, std::vector<std::string>& arguments) {
  arguments.insert(arguments.end(), {"--plugin", flags.plugin});
  if (!flags.versus.empty()) arguments.insert(arguments.end(), {"--vs", flags.versus});
  if (flags.same) arguments.emplace_back("--same");
  for (const auto* settings : {&flags.both, &flags.of_a, &flags.of_b})
    for (const config::Override& setting : *settings)
      arguments.insert(arguments.end(), {setting.flag, text("{}={}", setting.key, setting.value)});
  arguments.insert(arguments.end(),
                   {"--rounds", triax::to_text(flags.rounds), "--turn-ms", triax::to_text(flags.turn_ms)});
}

void check_output(const std::string& output, Refusals& refusals) {
  if (output.empty()) return;
  if (const std::string wrong = output_file_error(output); !wrong.empty())
    refusals.add(make_refusal(ErrorCode::kNotWritable, {"--output"}, "--output: {}", wrong)
                     .with_hint("name a file in a folder that exists and that you can write to"));
}

int write_result(const SideFlags& flags, const std::string& object) {
  if (flags.json) result_out() << object << '\n';
  result_out().flush(); // before the file, which may not be written
  if (flags.output.empty()) return kDone;
  try {
    write_output(object + '\n', flags.output);
  } catch (const Error& error) {
    print_problem(text("--output: {}", error.what())); // with --json, stdout has the result already
    return kFailed;
  }
  return kDone;
}

} // namespace triax::app
