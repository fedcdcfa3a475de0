// SPDX-License-Identifier: Apache-2.0
// Preflight in a child process: a plugin that crashes, exits or never returns when it is made or asked is refused by
// name, and nothing that it did to its process stays in this one.
//
// Threads: as plugin::run_probe(). Ownership: values. Blocking: computes in the child. Errors: Error if no process can
// be started, or if the child failed outside of every plugin; all else is a refusal.
#pragma once

#include <functional>
#include <optional>

#include "plugin/plugin_call.hpp"
#include "train/preflight.hpp"

namespace triax::train {

struct PreflightRequest {
  std::optional<Placement> placement;                              // place_here(), if there is none
  std::function<AskedDevices(const Placement& placement)> devices; // whose devices are asked for
};

struct CheckedRun {
  Placement placement;
  Preflight preflight;
};

CheckedRun preflight_in_child(const config::RunConfig& run, Log& log, const PreflightRequest& request,
                              const plugin::CallLimits& limits = {});

} // namespace triax::train
