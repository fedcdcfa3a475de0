// SPDX-License-Identifier: Apache-2.0
// Shared code of the subcommands of `triax data`.
//
// Blocking: as the subcommand does. Errors: invalid requests and signals determine the exit status; errors of the work
// are thrown to main.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "triax/error.hpp"

namespace triax::app {

/// Thrown by a progress callback to stop; the incomplete output is removed.
struct Stopped : std::exception {
  explicit Stopped(int number) : signal(number) {}
  int signal;
};

/// Prints `refused` if it is not empty; else runs `make` with a callback that throws Stopped after a signal. Returns
/// the exit status.
int run_data_verb(const Refusals& refused, bool as_json,
                  const std::function<void(const std::function<void()>& stop_if_signaled)>& make);

void add_data_prepare(CLI::App& data, int& status);
void add_data_train_tokenizer(CLI::App& data, int& status);

} // namespace triax::app
