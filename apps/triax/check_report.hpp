// What `triax check` found, and the two ways of telling it.
//
// Threads: one. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "config/loaded.hpp"
#include "train/preflight.hpp"

namespace triax::app {

struct CheckReport {
  std::string file;
  config::Loaded loaded;
  train::Placement placement; // with the next: empty if the configuration was refused
  train::Preflight preflight;
  std::vector<config::Refusal> refusals; // all of them
  bool asked_devices = true;             // and this machine
};

/// For people: values, plugins, layout, memory, the model's size. Of a run that was accepted.
std::string to_text(const CheckReport& report, bool colour);
/// One JSON object, of any run.
std::string to_json(const CheckReport& report);

} // namespace triax::app
