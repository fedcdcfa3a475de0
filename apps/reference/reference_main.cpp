// SPDX-License-Identifier: Apache-2.0
// Writes the manual pages and the completions of the command line: triax-reference OUTPUT DATE COMPLETION.bash. The
// build runs it, so that pages and program have the same flags.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "completions.hpp"
#include "data/output_file.hpp"
#include "manual_page.hpp"
#include "triax/error.hpp"
#include "triax/version.h"

namespace {

namespace fs = std::filesystem;
using namespace triax::reference;

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  if (!(out << in.rdbuf())) throw triax::Error("cannot be read", file.string());
  return out.str();
}

void write_file(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  triax::data::replace_file(file, content);
}

const Command& command_of(const Command& program, const std::string& path) {
  for (const Command* command : with_subcommands(program))
    if (command->path == path) return *command;
  throw triax::Error(triax::text("manual page \"{}\" names a subcommand that does not exist", path), {},
                     "change manual_texts() in apps/reference/manual_text.cpp");
}

/// Throws Error if the command line does not accept an example. The callback of parse_complete_callback() throws, so
/// the subcommand does not run.
void check_examples(const ManualText& page) {
  int status = 0;
  for (const Example& example : page.examples) {
    const std::string command = example.command;
    const std::unique_ptr<CLI::App> program = triax::app::make_command_line(status);
    program->parse_complete_callback([] { throw CLI::Success(); });
    try {
      program->parse(command.substr(command.find("triax ") + 6), false);
    } catch (const CLI::Success&) {
      continue;
    } catch (const CLI::ParseError& error) {
      throw triax::Error(triax::text("the example \"{}\" is refused: {}", command, error.what()), {},
                         "change it in apps/reference/manual_text.cpp");
    }
  }
}

void write_all(const fs::path& output, const ManualVersion& version, const fs::path& bash_functions) {
  int status = 0;
  const Command program = read_command(*triax::app::make_command_line(status), "triax");
  if (manual_texts().size() != program.subcommands.size() + 1)
    throw triax::Error("a subcommand has no manual page", {},
                       "add it to manual_texts() in apps/reference/manual_text.cpp");
  for (const ManualText& page : manual_texts()) {
    check_examples(page);
    write_file(output / "man/man1" / (page_name(page.path) + ".1"),
               manual_page(command_of(program, page.path), page, version));
  }
  const std::vector<Key> keys = read_keys();
  write_file(output / "bash-completion/completions/triax", bash_completion(program, keys, read_file(bash_functions)));
  write_file(output / "zsh/site-functions/_triax", zsh_completion(program, keys));
  write_file(output / "fish/vendor_completions.d/triax.fish", fish_completion(program, keys));
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: triax-reference OUTPUT DATE COMPLETION.bash\n";
    return 2;
  }
  try {
    write_all(argv[1], {argv[2], TRIAX_VERSION}, argv[3]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
