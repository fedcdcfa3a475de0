// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "common/verbs.hpp"
#include "triax/version.h"

namespace triax::app {

std::unique_ptr<CLI::App> make_command_line(int& status) {
  auto program = std::make_unique<CLI::App>("Triax trains GPT models with pipeline, tensor and data parallelism");
  program->set_version_flag("--version", "triax " TRIAX_VERSION);
  program->require_subcommand(1);
  add_train(*program, status);
  add_evaluate(*program, status);
  add_generate(*program, status);
  add_compare(*program, status);
  add_report(*program, status);
  add_check(*program, status);
  add_fit(*program, status);
  add_plan(*program, status);
  add_checkpoint(*program, status);
  add_import(*program, status);
  add_export(*program, status);
  add_schedule(*program, status);
  add_simulate(*program, status);
  add_plugins(*program, status);
  add_data(*program, status);
  add_bench(*program, status);
  return program;
}

} // namespace triax::app
