// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a measurement as processes of this machine, runs their job server, and ends all if one fails.
//
// Threads: the program's main thread, which has no other threads yet; if it ends, the kernel kills the ranks.
// Ownership: owns the processes; borrows what RankProcesses refers to. Blocking: until all ranks have ended. Errors:
// Error with the rank that failed first, or if a rank cannot be started.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/comm_plan.hpp"
#include "control/server.hpp"
#include "triax/log.hpp"

namespace triax::bench {

/// A message from rank 0: a SizeResult.
inline constexpr std::string_view kSizeTopic = "bench-size";

struct RankProcesses {
  const CommPlan& plan;
  std::vector<std::string> arguments; // arguments with which this program starts as a rank
  std::function<void(const SizeResult&)> report;
  std::function<void(int rank, const std::string& line)> output; // a line that a rank wrote
  Log& log; // of the backends that serve the ranks: a library reports here what it does not print
};

/// Returns the signal that ended the measurement, or 0.
int measure_processes(const RankProcesses& request);

/// "rank 2 was lost: killed by signal 9 (Killed)"
std::string failure_text(const control::Failure& failure);

} // namespace triax::bench
