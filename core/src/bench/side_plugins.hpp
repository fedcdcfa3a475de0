// SPDX-License-Identifier: Apache-2.0
// Finds the plugins that a measurement names, reads their options, and asks them whether they can be measured.
//
// Threads: the program's main thread, before it has others. Ownership: libraries are never unloaded. Blocking: loads
// libraries; the first time in a child process. Errors: added to `refusals`, with the flag that the user wrote.
#pragma once

#include <string>
#include <vector>

#include "bench/comm_plan.hpp"
#include "config/load.hpp"
#include "plugin/probe.hpp"
#include "triax/device.hpp"
#include "triax/kernels.hpp"

namespace triax::bench {

/// The plugin that a side of a measurement names.
struct PluginRequest {
  std::string flag;                       // "--plugin"
  std::string name;                       // the plugin's name, or the path of its file
  std::string kind;                       // "communicator"
  std::string table;                      // in front of keys: "comm"
  std::vector<config::Override> settings; // "comm.wait", with the flag that sets it
};

/// The choice has no library if the plugin cannot be used.
Side load_side(const PluginRequest& request, plugin::FirstLoad first_load, Refusals& refusals);

/// How the ranks of a plan can run.
struct RankMode {
  bool ranks_are_threads = false;
  DeviceKind device = DeviceKind::host;
};

/// Asks plugins in a child process. `started`: the ranks are processes that a launcher has started.
RankMode choose_rank_mode(const CommPlan& plan, const config::PluginChoice* kernels, bool started, Refusals& refusals);

} // namespace triax::bench
