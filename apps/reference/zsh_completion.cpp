// SPDX-License-Identifier: Apache-2.0
// Words and specifications as zshcompsys(1) defines them for _arguments and _values.
#include <algorithm>

#include "completions.hpp"
#include "triax/error.hpp"

namespace triax::reference {

namespace {

using Source = Completion::Source;

/// In single quotes, with a backslash before each character of `special`.
std::string escaped(const std::string& text, const char* special) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(special).find(c) != std::string_view::npos) out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

std::string function_name(const Command& command) {
  std::string out = "_" + command.path;
  std::ranges::replace(out, ' ', '_');
  return out;
}

std::string files(const std::string& ending) {
  return ending.empty() ? "_files" : "_files -g \"*" + ending + "\"";
}

/// The action that completes a value; it follows the value's name. A space before a function keeps _arguments from
/// passing more arguments than are written here.
std::string action(const Completion& completion) {
  const std::string words = joined(completion.words);
  switch (completion.source) {
    case Source::words:
      return words.empty() ? " " : "(" + words + ")";
    case Source::file:
      return words.empty() ? files(completion.restriction) : " _triax_complete_words_or_files " + words;
    case Source::folder:
      return "_files -/";
    case Source::key:
      return " _triax_complete_keys";
    case Source::plugin:
      return " _triax_complete_plugins \"" + completion.restriction + "\"";
  }
  return " ";
}

std::string specification(const Argument& flag) {
  std::string out;
  const std::string doc = "[" + escaped(flag.doc, "[]\\:") + "]";
  for (const std::string& name : flag.names) {
    const bool more = flag.repeatable || flag.several_values;
    const std::string equals = flag.value.empty() || flag.several_values || !name.starts_with("--") ? "" : "=";
    out += " \\\n    '";
    if (more) out += "*";
    out.append(name).append(equals).append(doc);
    if (!flag.value.empty())
      out += (flag.several_values ? ":*-*:" : ":") + escaped(flag.value, ":") + ":" + action(flag.completion);
    out += "'";
  }
  return out;
}

std::string function_of(const Command& command) {
  std::string out = function_name(command) + "() {\n";
  if (!command.subcommands.empty()) out += "  local context state state_descr line\n  typeset -A opt_args\n";
  out += std::string("  _arguments ") + (command.subcommands.empty() ? "-s" : "-C");
  for (const Argument& flag : command.flags) out += specification(flag);
  for (const Argument& argument : command.positionals)
    out += " \\\n    '" + std::string(argument.required ? ":" : "::") + escaped(argument.value, ":") + ":" +
           action(argument.completion) + "'";
  if (command.subcommands.empty()) return out + "\n}\n\n";
  out += " \\\n    '1: :->verb' '*:: :->rest'\n  case $state in\n    verb)\n      local -a verbs=(";
  for (const Command& verb : command.subcommands)
    out += text("\n        '{}:{}'", verb.name(), escaped(verb.doc, ":\\"));
  out += ")\n      _describe subcommand verbs\n      ;;\n    rest)\n      case $line[1] in\n";
  for (const Command& verb : command.subcommands) out += text("        {}) {} ;;\n", verb.name(), function_name(verb));
  return out + "      esac\n      ;;\n  esac\n}\n\n";
}

std::string zsh_keys(const std::vector<Key>& keys) {
  std::string out =
      "_triax_complete_keys() {\n  local key=${PREFIX%%=*}\n  if [[ $PREFIX == *=* ]]; then\n"
      "    compset -P 1 '*='\n    case $key in\n";
  for (const Key& key : keys) {
    if (key.completion.source == Source::words && !key.completion.words.empty())
      out += text("      {}) compadd -- {} ;;\n", key.name, joined(key.completion.words));
    if (key.completion.source == Source::plugin || key.completion.source == Source::file)
      out += text("      {}) {} ;;\n", key.name, action(key.completion));
  }
  out += "    esac\n    return\n  fi\n  local -a keys=(";
  for (const Key& key : keys) out += text("\n    '{}:{}'", key.name, escaped(key.doc, ":\\"));
  return out + ")\n  _describe -V key keys -S =\n}\n\n";
}

constexpr const char* kZshHelpers = R"zsh(_triax_complete_plugins() {
  local program=${$(whence -p triax):A}
  local -a folders=(${(s.:.)TRIAX_PLUGIN_PATH} ${program:h:h}/lib/triax/plugins)
  compadd -- $^folders/$1*.so(N:t:r)
}

_triax_complete_words_or_files() {
  _alternative "values:value:($*)" 'files:file:_files'
}

)zsh";

} // namespace

std::string zsh_completion(const Command& program, const std::vector<Key>& keys) {
  std::string out =
      "#compdef triax\n# SPDX-License-Identifier: Apache-2.0\n# Made from the flags of triax when it is "
      "built.\n\n";
  out += kZshHelpers + zsh_keys(keys);
  const std::vector<const Command*> commands = with_subcommands(program);
  for (const Command* command : commands) out += function_of(*command);
  return out + function_name(program) + " \"$@\"\n";
}

} // namespace triax::reference
