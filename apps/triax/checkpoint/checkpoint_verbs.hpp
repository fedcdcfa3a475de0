// SPDX-License-Identifier: Apache-2.0
// Shared code of the subcommands of `triax checkpoint`.
//
// Blocking: as the subcommand does. Errors: those before the work starts determine the exit status; errors of the work
// are thrown to main.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/tensor_reader.hpp"

namespace triax::app {

/// The checkpoint that an argument means. Prints an Error and returns null if it is not one.
std::unique_ptr<checkpoint::TensorReader> open_checkpoint(const std::string& argument, const char* key, bool as_json);

/// Calls `work`, whose StopRequest reports signals, so that it can remove what it has not completed. Returns the exit
/// status.
int run_writing(const std::function<void(const checkpoint::StopRequest& stop)>& work);

/// The values of --dtype.
std::vector<std::string> export_types();
/// Empty for an empty name.
std::optional<DType> export_type(const std::string& name);

void add_checkpoint_list(CLI::App& checkpoint, int& status);
void add_checkpoint_show(CLI::App& checkpoint, int& status);
void add_checkpoint_verify(CLI::App& checkpoint, int& status);
void add_checkpoint_diff(CLI::App& checkpoint, int& status);
void add_checkpoint_convert(CLI::App& checkpoint, int& status);
void add_checkpoint_average(CLI::App& checkpoint, int& status);

} // namespace triax::app
