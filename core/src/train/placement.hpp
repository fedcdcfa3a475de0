// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a run are, and how those of one process share its cores.
//
// Threads: any. Ownership: values. Blocking: place_here() reads a few small files, and asks the communicators.
// Errors: none: what a communicator throws when it is asked, preflight meets again.
#pragma once

#include <optional>
#include <string>

#include "config/run_config.hpp"
#include "triax/device.hpp"

namespace triax::train {

struct Placement {
  int ranks = 1;                 // on this machine
  int cores = 1;                 // that they share
  bool ranks_are_threads = true; // of this process; else each rank is a process of its own

  /// CPU threads that each rank is offered: its part of the cores, and at least 1. Its kernel set may use others.
  int threads_per_rank() const { return cores > ranks ? cores / ranks : 1; }
};

/// Ranks of this machine, by their number among them, from `first` on.
struct AskedDevices {
  int first = 0, count = 0;
};

/// All ranks of the run on this machine: as processes, or as threads of this one where a communicator joins only those.
Placement place_here(const config::RunConfig& run);

/// "1 rank, 2 CPU threads", "8 ranks as threads of this process, 1 CPU thread each on 2 cores". `threads`: of the
/// kernel set of each rank. They and cores are told only where its `device` is the host: "4 ranks as processes,
/// computing on GPUs"; none: it is not known.
std::string to_text(const Placement& placement, std::optional<DeviceKind> device, int threads);

} // namespace triax::train
