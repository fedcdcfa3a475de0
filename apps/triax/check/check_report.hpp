// SPDX-License-Identifier: Apache-2.0
// The result of `triax check`, and its two output formats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/memory_limit.hpp"
#include "config/load.hpp"
#include "train/preflight.hpp"

namespace triax::app {

struct CheckReport {
  std::string file;
  config::LoadResult loaded;
  train::Placement placement; // this and preflight: empty if the configuration has errors
  train::Preflight preflight;
  std::vector<config::Diagnostic> refusals; // all errors, of configuration and preflight
  bool checked_devices = true;              // whether the devices and memory of this machine were checked
  std::optional<MemoryLimit> limit{};       // --memory: of each rank's device
};

struct CheckStyle {
  bool colour = false;
  int columns = 0;  // width of the terminal, to fold sentences; 0: no folding
  bool all = false; // --all: every value and rank, however many ranks there are
};

/// Notes for the user on a run that can be planned.
std::vector<std::string> notes(const CheckReport& report);

/// Text for a run without errors: values, plugins, layout, memory, model size. A run with many different ranks gets
/// only a summary, unless `all` is set.
std::string to_text(const CheckReport& report, const CheckStyle& style);
/// One JSON object, for any run.
std::string to_json(const CheckReport& report);

} // namespace triax::app
