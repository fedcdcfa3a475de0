// SPDX-License-Identifier: Apache-2.0
// Flags that both subcommands of `triax bench` have: the sides, their options, rounds and output.
//
// Threads: the main thread. Errors: returned, or of CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/side_plugins.hpp"
#include "config/load.hpp"

namespace triax::app {

struct SideFlags {
  std::string plugin, versus;
  std::vector<config::Override> both, of_a, of_b; // --set, --set-a, --set-b
  std::int64_t rounds = 10;
  double turn_ms = 10;
  bool same = false; // compares --plugin with itself
  bool json = false;
  std::string output; // file for the JSON object

  bool compares() const { return !versus.empty() || !of_b.empty() || same; }
};

/// The words for the plugin that the flags name: "communicator", "COMMUNICATOR" and "comm", or "kernel set", "KERNELS"
/// and "kernels".
struct SideWords {
  const char *what, *value, *kind, *table;
};

void add_side_flags(CLI::App& verb, SideFlags& flags, const SideWords& words);
/// Loads the plugins. Without --vs, --set-b makes the second side.
std::vector<bench::Side> load_sides(const SideFlags& flags, const SideWords& words, plugin::FirstLoad first_load,
                                    Refusals& refusals);
/// The flags of the sides for the command of a rank.
void append_side_flags(const SideFlags& flags, std::vector<std::string>& arguments);

/// Adds an error if the file of --output cannot be written.
void check_output(const std::string& output, Refusals& refusals);
/// Prints the object with --json, and then writes it to the file of --output. Returns the exit status.
int write_result(const SideFlags& flags, const std::string& object);

} // namespace triax::app
