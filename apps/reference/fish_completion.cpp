// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "completions.hpp"
#include "triax/error.hpp"

namespace triax::reference {

namespace {

using Source = Completion::Source;

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += (c == '\'' || c == '\\' ? std::string("\\") : std::string()) + c;
  return out + "'";
}

/// Whether the line has the words of the command. fish passes the words before the current one.
std::string condition(const Command& command) {
  std::istringstream words(command.path);
  std::string word, out;
  words >> word; // triax
  while (words >> word) out += (out.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
  std::string verbs;
  for (const Command& verb : command.subcommands) verbs += " " + verb.name();
  if (!verbs.empty()) out += (out.empty() ? "" : "; and ") + ("not __fish_seen_subcommand_from" + verbs);
  return fish_quoted(out);
}

std::string values(const Completion& completion) {
  std::vector<std::string> list = completion.words;
  const bool any_file = completion.source == Source::file && completion.restriction.empty();
  if (completion.source == Source::folder) list.emplace_back("(__fish_complete_directories)");
  if (completion.source == Source::key) list.emplace_back("(__triax_keys)");
  if (completion.source == Source::plugin) list.push_back("(__triax_plugins " + completion.restriction + ")");
  if (completion.source == Source::file && !any_file)
    list.push_back("(__fish_complete_suffix " + completion.restriction + ")");
  return (any_file ? " -r -F" : " -x") + (list.empty() ? std::string() : " -a " + fish_quoted(joined(list)));
}

std::string lines_of(const Command& command) {
  const std::string begin = "complete -c triax -n " + condition(command);
  std::string out;
  for (const Command& verb : command.subcommands)
    out += begin + " -a " + verb.name() + " -d " + fish_quoted(verb.doc) + "\n";
  for (const Argument& flag : command.flags) {
    out += begin;
    for (const std::string& name : flag.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    out += (flag.value.empty() ? std::string() : values(flag.completion)) + " -d " + fish_quoted(flag.doc) + "\n";
  }
  for (const Argument& argument : command.positionals) {
    std::string words = values(argument.completion);
    out += begin + words + " -d " + fish_quoted(argument.doc) + "\n";
  }
  return out;
}

std::string fish_keys(const std::vector<Key>& keys) {
  std::string out = "function __triax_keys\n    printf '%s\\t%s\\n'";
  for (const Key& key : keys) {
    out += " \\\n        " + fish_quoted(key.name + "=") + " " + fish_quoted(key.doc);
    for (const std::string& word : key.completion.words) out += " " + fish_quoted(key.name + "=" + word) + " ''";
  }
  return out + "\nend\n\n";
}

constexpr const char* kFishPlugins = R"(function __triax_plugins
    set -l prefix "$argv[1]"
    set -l installed (dirname (dirname (realpath (command -s triax))))/lib/triax/plugins
    for folder in (string split : -- "$TRIAX_PLUGIN_PATH") $installed
        for file in $folder/$prefix*.so
            string replace -r '^.*/(.*)\.so$' '$1' -- $file
        end
    end
end

)";

} // namespace

std::string fish_completion(const Command& program, const std::vector<Key>& keys) {
  std::string out = "# SPDX-License-Identifier: Apache-2.0\n# Made from the flags of triax when it is built.\n\n";
  out += kFishPlugins + fish_keys(keys) + "complete -c triax -f\n";
  for (const Command* command : with_subcommands(program)) out += lines_of(*command);
  return out;
}

} // namespace triax::reference
