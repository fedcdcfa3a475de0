// SPDX-License-Identifier: Apache-2.0
// The flags of `triax bench comm`, and the plan that they describe.
//
// Threads: the main thread. Errors: returned.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/comm_plan.hpp"
#include "bench/side_flags.hpp"

namespace triax::app {

struct CommArguments {
  SideFlags sides;
  std::string kernels;
  std::string operation = "all_reduce", sizes = "4K:64M", dtype = "f32";
  std::optional<int> ranks; // default 2; under a launcher, its number
  std::int64_t window = 32;
  double timeout_s = 60;
};

std::shared_ptr<CommArguments> add_comm_flags(CLI::App& verb);

/// The measurement that the flags describe; not complete if there are refusals.
struct RequestedComm {
  bench::CommPlan plan;
  std::optional<bench::Side> kernels; // whose device is used
  Refusals refusals;

  const config::PluginChoice* kernels_choice() const { return kernels ? &kernels->choice : nullptr; }
};

/// Refuses a number of ranks that contradicts --ranks. Needs no plugin and no other rank: every rank can end before it
/// waits for the others.
Refusals check_world(const CommArguments& arguments, int world);

/// `world`: the number of ranks that a launcher has started.
RequestedComm read_comm(const CommArguments& arguments, std::optional<int> world, plugin::FirstLoad first_load);

/// The command of a rank: "bench", "comm", ...
std::vector<std::string> rank_arguments(const CommArguments& arguments, int ranks);
/// The flags, which must be equal on all ranks.
std::map<std::string, std::string> keys_of(const CommArguments& arguments, int ranks);

} // namespace triax::app
