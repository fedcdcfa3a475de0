// SPDX-License-Identifier: Apache-2.0
// Preflight in a child process. A plugin that crashes, exits or hangs is reported by name, and cannot change the state
// of this process.
//
// Threads: as for plugin::run_probe(). Blocking: until the child ends. Errors: Error if no process can be started, or
// if the child failed outside all plugins; other errors are returned.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "plugin/plugin_call.hpp"
#include "train/preflight.hpp"
#include "triax/log.hpp"

namespace triax::train {

struct PreflightRequest {
  std::optional<Placement> placement;                                // empty: choose_placement()
  std::function<CheckedDevices(const Placement& placement)> devices; // ranks whose devices are checked
};

struct CheckedRun {
  Placement placement;
  Preflight preflight;
};

CheckedRun preflight_in_child(const config::RunConfig& run, Log& log, const PreflightRequest& request,
                              const plugin::CallLimits& limits = {});

/// The answer of a child process.
struct ChildAnswer {
  std::string packed; // by plugin::pack()
  Refusals refusals;  // the plugin that ended the child; then `packed` is empty
};

/// Calls `body`, which calls the run's plugins, in a child process, and returns its result. `log` gets a warning about
/// a call that has not returned for CallLimits::notice.
ChildAnswer ask_in_child(const config::RunConfig& run, const std::function<std::string()>& body,
                         const plugin::CallLimits& limits = {}, Log& log = null_log());

} // namespace triax::train
