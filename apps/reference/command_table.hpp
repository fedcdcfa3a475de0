// SPDX-License-Identifier: Apache-2.0
// The subcommands and flags of the program as plain data, for manual pages and completions. The program's own command
// line is the only source: a flag that is not in it is in no page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace triax::reference {

/// The candidates that a shell offers in place of a value.
struct Completion {
  enum class Source { words, file, folder, key, plugin };
  Source source = Source::words;  // what is offered besides `words`
  std::string restriction;        // ending of a file's name, ".toml", or prefix of a plugin's, "sched-"
  std::vector<std::string> words; // values that are always offered
};

/// A flag or a positional argument.
struct Argument {
  std::vector<std::string> names; // "-h", "--help"; of a positional argument: "RUN.toml"
  std::string value;              // "FORMAT"; empty: takes no value
  std::string range;              // "1 to 4096", or empty
  std::string doc;
  std::vector<std::string> needs; // flags that must be given, too
  Completion completion;
  bool required = false;
  bool repeatable = false;     // can be given more than once
  bool several_values = false; // takes all words up to the next flag
};

struct Command {
  std::string path; // "triax data prepare"
  std::string doc;
  std::vector<Argument> flags, positionals;
  std::vector<Command> subcommands;

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

/// Throws Error for a flag whose value has a name that no shell completes: a row in value_names() is missing.
Command read_command(const CLI::App& app, const std::string& path);

/// The command, then all commands below it.
std::vector<const Command*> with_subcommands(const Command& command);

} // namespace triax::reference
