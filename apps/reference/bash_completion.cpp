// SPDX-License-Identifier: Apache-2.0
#include "completions.hpp"
#include "triax/error.hpp"

namespace triax::reference {

namespace {

/// A word that begins with @ names what completion.bash looks up when it runs.
std::string words_of(const Completion& completion) {
  std::vector<std::string> out = completion.words;
  switch (completion.source) {
    case Completion::Source::words:
      break;
    case Completion::Source::file:
      out.push_back("@file" + completion.restriction);
      break;
    case Completion::Source::folder:
      out.emplace_back("@folder");
      break;
    case Completion::Source::key:
      out.emplace_back("@key");
      break;
    case Completion::Source::plugin:
      out.push_back("@plugin" + completion.restriction);
      break;
  }
  return joined(out);
}

std::string row(const std::string& name, const std::string& words) {
  return text("    \"{}\") row=({}) ;;\n", name, words);
}

std::string rows_of(const Command& command) {
  std::string out;
  std::vector<std::string> verbs, flags;
  for (const Command& verb : command.subcommands) verbs.push_back(verb.name());
  for (const Argument& flag : command.flags) flags.insert(flags.end(), flag.names.begin(), flag.names.end());
  if (!verbs.empty()) out += row("verbs " + command.path, joined(verbs));
  out += row("flags " + command.path, joined(flags));
  for (const Argument& flag : command.flags) {
    if (flag.value.empty()) continue;
    out += row("value " + command.path + " " + flag.names.back(), words_of(flag.completion));
    if (flag.several_values) out += row("several " + command.path + " " + flag.names.back(), {});
  }
  for (const Argument& argument : command.positionals)
    out += row("argument " + command.path, words_of(argument.completion));
  return out;
}

} // namespace

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string bash_completion(const Command& program, const std::vector<Key>& keys, std::string functions) {
  std::string rows;
  std::vector<std::string> names;
  for (const Command* command : with_subcommands(program)) rows += rows_of(*command);
  for (const Key& key : keys) {
    names.push_back(key.name);
    if (const std::string values = words_of(key.completion); !values.empty()) rows += row("key " + key.name, values);
  }
  rows += row("keys", joined(names));
  constexpr std::string_view kMark = "@ROWS@\n";
  const std::size_t at = functions.find(kMark);
  if (at == std::string::npos) throw Error("the text of the bash completion has no line @ROWS@");
  return functions.replace(at, kMark.size(), rows);
}

} // namespace triax::reference
