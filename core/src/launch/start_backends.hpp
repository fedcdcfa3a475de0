// SPDX-License-Identifier: Apache-2.0
// The communicator backends that must serve the processes which this launcher starts (triax/process_start.hpp).
//
// Threads: the launcher's main thread. Ownership: owns the backends; choices, layout and log must outlive it. Blocking:
// shortly. Errors: Error with the plugin.
#pragma once

#include <vector>

#include "config/run_config.hpp"
#include "os/child_process.hpp"
#include "plugin/loader.hpp"
#include "triax/communicator.hpp"
#include "triax/process_start.hpp"

namespace triax::launch {

class StartBackends {
 public:
  /// Starts to serve all ranks, which are processes of this machine.
  StartBackends(const std::vector<const config::PluginChoice*>& choices, const Layout& layout, Log& log);
  /// The backends of a run.
  StartBackends(const config::RunConfig& run, const Layout& layout, Log& log);

  /// For the process of a rank.
  std::vector<os::Variable> variables(int rank) const;

 private:
  struct Serving {
    const config::PluginChoice* choice;
    plugin::Instance<CommBackend> backend;
    ProcessStart* start;
  };
  std::vector<Serving> serving_;
};

} // namespace triax::launch
