// The command line: parses, runs one verb, prints an error once, returns the exit status.
#include <CLI/CLI.hpp>
#include <iostream>

#include "triax/error.hpp"
#include "triax/version.h"
#include "verbs.hpp"

int main(int argc, char** argv) {
  using namespace triax::app;
  CLI::App program{"Triax trains GPT models with pipeline, tensor and data parallelism"};
  program.set_version_flag("--version", "triax " TRIAX_VERSION);
  program.require_subcommand(1);
  int status = kDone;
  add_train(program, status);
  add_check(program, status);
  add_plugins(program, status);
  add_data(program, status);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? kDone : kRefused;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
  return status;
}
