// SPDX-License-Identifier: Apache-2.0
// The conformance suites that `triax plugins test` can run, one for each kind of plugin. To add one, add a row to the
// table in plugin_suites.cpp, and a function that makes the subject of its checks from a loaded plugin.
//
// Threads: the main thread. Ownership: the checks refer to the plugin's library, which is never unloaded. Blocking:
// asks the plugin in a child process. Errors: refusals.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/load.hpp"
#include "config/run_config.hpp"
#include "triax/conformance/check.hpp"
#include "triax/error.hpp"

namespace triax::app {

/// The time limit of a check, and of a call before the checks, in those of a wait.
inline constexpr double kCheckWaits = 4;

struct SuiteRequest {
  const config::PluginChoice& choice;                   // with its options
  std::optional<bool> processes;                        // whether ranks are processes; empty: as the plugin can
  int ranks = 5;                                        // largest group
  double timeout_s = 30;                                // of a wait
  std::vector<std::string> folders;                     // --path
  std::vector<std::pair<std::string, std::string>> set; // options that are set, sorted
  std::string kernels; // that a model runs on, or whose devices the ranks of a communicator have; empty: not chosen
};

struct RequestedSuite {
  std::string subject; // "comm-mine, up to 5 ranks as threads"
  std::vector<conformance::Check> checks;
};

struct KindOfSuite {
  const char* kind; // "communicator"
  RequestedSuite (*make)(const SuiteRequest&, Refusals&);
  /// More settings of the plugin, besides those that the user gives; null: none.
  std::vector<config::Override> (*settings)(const plugin::Library&,
                                            const std::vector<config::Override>& given) = nullptr;
  bool has_ranks = false;    // --threads, --processes and --ranks say how its ranks run
  bool uses_kernels = false; // --kernels selects the kernel set that its checks compute on, or its ranks' devices
  const char* default_kernels = ""; // value of --kernels that is used if it is not given
};

std::span<const KindOfSuite> kinds_of_suites();

} // namespace triax::app
