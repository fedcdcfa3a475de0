// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"

#include <algorithm>
#include <map>

#include "common/list_option.hpp"
#include "triax/error.hpp"

namespace triax::reference {

namespace {

using Source = Completion::Source;

/// The completion of a value, by its name. A name with a dot ends like the file; a word in lower case is a value
/// itself.
const std::map<std::string, Completion>& value_names() {
  static const std::map<std::string, Completion> names = {
      {"FILE", {Source::file, {}, {}}},
      {"PREFIX", {Source::file, {}, {}}},
      {"DIR", {Source::folder, {}, {}}},
      {"CHECKPOINT", {Source::file, ".toml", {}}}, // or a folder
      {"RUN_DIR", {Source::folder, {}, {}}},
      {"RUN", {Source::file, ".toml", {}}},
      {"TABLE.KEY=VALUE", {Source::key, {}, {}}},
      {"SCHEDULER", {Source::plugin, "sched-", {}}},
      {"COMMUNICATOR", {Source::plugin, "comm-", {}}},
      {"KERNELS", {Source::plugin, "kernels-", {}}},
      {"MODEL", {Source::plugin, "model-", {}}},
      {"PLANNER", {Source::plugin, "plan-", {}}},
      {"plugin", {Source::plugin, {}, {}}},
      {"comm.KEY=VALUE", {}},
      {"kernels.KEY=VALUE", {}},
      {"F", {}},
      {"INPUT", {}},
      {"K", {}},
      {"KEY", {}},
      {"KEY=VALUE", {}},
      {"KIND", {}},
      {"LINE", {}},
      {"MS", {}},
      {"NAME=VALUE", {}},
      {"N", {}},
      {"NAME", {}},
      {"P", {}},
      {"PATTERNS", {}},
      {"R", {}},
      {"RATE", {}},
      {"SECONDS", {}},
      {"SIZE", {}},
      {"SIZES", {}},
      {"STEPS", {}},
      {"T", {}},
      {"TEXT", {}},
      {"TOKEN", {}},
  };
  return names;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1)
    out.push_back(text.substr(begin, end - begin));
  out.push_back(text.substr(begin));
  return out;
}

bool is_word(const std::string& name) {
  return std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

/// `names`: "FILE", "RUN.toml", or alternatives as in "byte|gpt2|FILE".
Completion completion_of(const std::string& names, const std::string& flag) {
  Completion out;
  for (const std::string& name : split(names, '|')) {
    const auto known = value_names().find(name);
    const std::size_t dot = name.find('.');
    if (known != value_names().end()) {
      out.source = known->second.source;
      out.restriction = known->second.restriction;
    } else if (is_word(name)) {
      out.words.push_back(name);
    } else if (dot != std::string::npos) {
      out.source = Source::file;
      out.restriction = name.substr(dot);
    } else {
      throw Error(text("{}: no completion for a value with the name {}", flag, name), {},
                  "add the name to value_names() in apps/reference/command_table.cpp");
    }
  }
  return out;
}

/// Reads what CLI11 shows of a type, "FORMAT:{table,csv}", "N:INT in [1 - 4096]", "MS REQUIRED" or "TEXT:DIR".
void read_type(const CLI::Option& option, const std::string& name, Argument& out) {
  std::vector<std::string> parts = split(option.get_type_name(), ':');
  out.value = parts.front();
  if (const std::size_t note = out.value.find(" REQUIRED"); note != std::string::npos) {
    out.value.resize(note);
    out.required = true;
  }
  if (out.value == "TEXT" && option.get_positional()) out.value = name;
  if (out.value == "TEXT" && parts.size() > 1) out.value = parts.back();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    const std::size_t begin = part.find('['), dash = part.find(" - "), end = part.find(']');
    if (part.starts_with("{")) out.completion.words = split(part.substr(1, part.size() - 2), ',');
    if (begin != std::string::npos && dash != std::string::npos && end != std::string::npos)
      out.range = part.substr(begin + 1, dash - begin - 1) + " to " + part.substr(dash + 3, end - dash - 3);
  }
  if (out.completion.words.empty()) out.completion = completion_of(out.value, name);
}

Argument read_argument(const CLI::Option& option) {
  Argument out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  if (option.get_positional()) out.names = {option.get_name(true)};
  out.doc = option.get_description();
  out.required = option.get_required();
  for (const CLI::Option* needed : option.get_needs()) out.needs.push_back(needed->get_name());
  if (option.get_items_expected_max() == 0) return out; // takes no value
  out.several_values = app::has_several_values(option);
  out.repeatable = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  read_type(option, out.names.back(), out);
  return out;
}

} // namespace

Command read_command(const CLI::App& app, const std::string& path) {
  Command out{path, app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? out.positionals : out.flags).push_back(read_argument(*option));
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    out.subcommands.push_back(read_command(*verb, path + " " + verb->get_name()));
  return out;
}

std::vector<const Command*> with_subcommands(const Command& command) {
  std::vector<const Command*> out = {&command};
  for (const Command& verb : command.subcommands) {
    const std::vector<const Command*> below = with_subcommands(verb);
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

} // namespace triax::reference
