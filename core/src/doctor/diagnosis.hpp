// SPDX-License-Identifier: Apache-2.0
// Examines a plugin: whether it is found, loads and can be created, and if not, every reason with its next step. The
// loader stops at the first fault; a diagnosis continues with whatever can still be checked.
//
// Threads: as for plugin::run_probe(). Ownership: values. Blocking: reads the file and, if it does not load, libraries
// of the machine; loads it and creates its object in child processes only. Errors: faults are checks of the diagnosis;
// Error if no process can be started.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/loader.hpp"
#include "plugin/plugin_call.hpp"

namespace triax::doctor {

enum class Outcome {
  ok,
  note,    // not a fault, but worth knowing
  problem, // keeps runs from using the plugin, or breaks a rule for plugins
  skipped  // cannot be checked because of another fault
};
std::string_view name_of(Outcome outcome);

/// One check. Several faults of one kind are several checks with the same name.
struct Check {
  std::string name; // "symbols"
  Outcome outcome = Outcome::ok;
  std::string text;                      // what was found
  std::vector<std::string> details = {}; // one line each
  std::string next = {};                 // the next step, of a problem
};

struct Diagnosis {
  std::string plugin;         // as it was given: a name or a path
  std::filesystem::path file; // empty if it was not found
  std::vector<Check> checks;

  std::size_t problems() const;
};

/// `plugin`: a name to search in `folders`, or a path: what has a slash or ends with .so.
Diagnosis diagnose(const std::string& plugin, const std::vector<plugin::SearchFolder>& folders,
                   const plugin::CallLimits& limits = {});

/// One JSON object, indented.
std::string to_json(const Diagnosis& diagnosis);

} // namespace triax::doctor
