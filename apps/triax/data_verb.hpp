// SPDX-License-Identifier: Apache-2.0
// What the verbs below `triax data` share.
//
// Threads: one. Ownership: values. Blocking: as what they run does. Errors: refusals and signals become the exit
// status; what fails in the work is thrown on, to main.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "triax/error.hpp"

namespace triax::app {

/// Thrown out of a progress callback: what is being made is taken back.
struct Stopped : std::exception {
  explicit Stopped(int number) : signal(number) {}
  int signal;
};

/// Tells the refusals, if there are any; else runs `make` with a callback that leaves it after a signal. Returns the
/// exit status.
int run_data_verb(const std::vector<Support>& refused, bool as_json,
                  const std::function<void(const std::function<void()>& stop_if_asked)>& make);

void add_data_prepare(CLI::App& data, int& status);
void add_data_train_tokenizer(CLI::App& data, int& status);

} // namespace triax::app
