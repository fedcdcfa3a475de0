// SPDX-License-Identifier: Apache-2.0
// Searches the settings of a run under which every rank fits into the memory of its device: sequence parallelism, the
// division of optimizer state over data ranks, recomputation and the largest microbatch. The layout and the batch stay
// as they are.
//
// Threads: as for plugin::run_probe(). Blocking: plans the run up to a few dozen times. Errors: as for
// preflight_in_child().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::train {

/// The settings that the search changes.
struct MemorySettings {
  bool sequence = false;                           // parallel.sequence
  std::string shard = "none";                      // optimizer.shard
  config::PerStage<std::string> recompute{"none"}; // memory.recompute
  std::int64_t micro = 1;                          // batch.micro
  config::PerStage<std::int64_t> layers{1};        // memory.recompute_layers
  bool operator==(const MemorySettings&) const = default;
};

struct MemoryPlan {
  MemorySettings settings;
  std::uint64_t bytes = 0;      // of the device of the rank that needs most
  int rank = 0;                 // it
  std::optional<double> bubble; // mean of the ranks by FLOPs, a fraction of the step; empty: not known
};

struct MemorySearch {
  Refusals refusals; // of the run as it is written; then the rest is empty
  MemoryPlan written;
  bool scatter_gather = false; // as it is written; sequence parallelism turns it off
  /// For each sequence, shard, recompute and number of layers, those that cost least time first: the plan with the
  /// largest microbatch that fits; if none does, the plan with the smallest. Bytes are of the first and last tensor
  /// ranks.
  std::vector<MemoryPlan> plans;
  /// The plan that fits with the least change: `written`, if it fits; else the first of `plans` that fits with its
  /// microbatch, or that with the largest. Bytes are of all ranks. Empty: none fits.
  std::optional<MemoryPlan> best{};
  /// Failures of plugins under settings that the run does not have. These settings are not in `plans`.
  Refusals left_out{};
};

/// `limit`: bytes of each rank's device. Plugins are called in a child process.
MemorySearch search_memory(const config::RunConfig& run, std::uint64_t limit, Log& log);

} // namespace triax::train
