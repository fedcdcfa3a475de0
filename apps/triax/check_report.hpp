// SPDX-License-Identifier: Apache-2.0
// What `triax check` found, and the two ways of telling it.
//
// Threads: one. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/loaded.hpp"
#include "memory_limit.hpp"
#include "train/preflight.hpp"

namespace triax::app {

struct CheckReport {
  std::string file;
  config::Loaded loaded;
  train::Placement placement; // with the next: empty if the configuration was refused
  train::Preflight preflight;
  std::vector<config::Refusal> refusals; // all of them
  bool asked_devices = true;             // and this machine
  std::optional<MemoryLimit> limit{};    // of each rank's device
};

struct CheckStyle {
  bool colour = false;
  int columns = 0;  // of the terminal that sentences have to fit; 0: none
  bool all = false; // every value and rank, however many ranks there are
};

/// For people, of a run that was accepted: values, plugins, layout, memory, the model's size. Of a run with many ranks
/// that differ a summary alone, unless all of it is wanted.
std::string to_text(const CheckReport& report, const CheckStyle& style);
/// One JSON object, of any run.
std::string to_json(const CheckReport& report);

} // namespace triax::app
