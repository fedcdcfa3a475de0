// SPDX-License-Identifier: Apache-2.0
// `triax plan RUN.toml`: the search of plans for a run.
//
// Blocking: computes. Errors: printed; those of plugins are thrown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/cluster.hpp"

namespace triax::app {

/// `--reserve` that leaves nothing free.
inline constexpr const char* kNoReserve = "0";

struct SearchArguments {
  std::string file, cluster; // RUN.toml, CLUSTER.toml
  std::vector<config::Override> overrides;
  std::optional<int> gpus; // empty: those of the run's layout
  int top = 10;
  std::vector<std::string> fixed; // "tensor=8"
  std::string planner = "plan-sweep";
  std::string reserve = "2GB";
  std::optional<double> tokens;
  bool explain = false, json = false;
};

/// Returns the exit status.
int search_run(const cost::Cluster& cluster, const SearchArguments& arguments);

} // namespace triax::app
