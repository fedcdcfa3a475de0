// SPDX-License-Identifier: Apache-2.0
// On which machine the ranks of a run are, and how those of one process share its cores.
//
// Threads: any. Blocking: choose_placement() reads a few small files, and queries the communicators. Errors: none;
// preflight reports what a communicator throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/run_config.hpp"
#include "triax/device.hpp"

namespace triax::train {

/// Limit of a run's ranks: the reports of more would not be read.
inline constexpr std::int64_t kMaxWorld = 1 << 20;

struct Placement {
  int ranks = 1;                 // on this machine
  int cores = 1;                 // that they share
  bool ranks_are_threads = true; // threads of this process; else each rank is a separate process

  /// CPU threads offered to each rank: its share of the cores, at least 1. A kernel set may use another number.
  int threads_per_rank() const { return cores > ranks ? cores / ranks : 1; }
};

/// The local ranks whose devices are checked: `count` of them, from `first` on.
struct CheckedDevices {
  int first = 0, count = 0;
};

/// All ranks of the run on this machine: as processes, or as threads of this process if a communicator requires that.
Placement choose_placement(const config::RunConfig& run);

/// "1 rank, 2 CPU threads", "8 ranks as threads of this process, 1 CPU thread each on 2 cores". `threads`: of the
/// kernel set, per rank. Threads and cores are only mentioned if `device` is the host, else: "4 ranks as processes,
/// computing on GPUs". Empty `device`: not known.
std::string to_text(const Placement& placement, std::optional<DeviceKind> device, int threads);

} // namespace triax::train
