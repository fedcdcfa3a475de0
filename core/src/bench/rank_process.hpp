// SPDX-License-Identifier: Apache-2.0
// A rank of a measurement as a process: started by this program (comm_processes.hpp), or by mpirun, srun or torchrun.
//
// Threads: the process's main thread, before it has others. Ownership: borrows what ProcessRequest refers to. Blocking:
// until all ranks have ended. Errors: printed by one process, see `print`; Error if the job server cannot be created.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "bench/comm_plan.hpp"
#include "launch/environment.hpp"
#include "triax/log.hpp"

namespace triax::bench {

struct ProcessRequest {
  const launch::Environment& environment;
  const CommPlan* plan = nullptr; // null if this rank refuses
  const config::PluginChoice* kernels = nullptr;
  Log* log = &null_log(); // of the plugins
  double timeout_s = 60;
  std::string refused = {};                                   // the errors of this rank; empty: none
  std::map<std::string, std::string> keys = {};               // that must be equal on all ranks
  std::function<void(const std::string& problem)> print = {}; // what no other process prints; before a launcher can end
                                                              // this process
  std::function<void(const SizeResult&)> report = {};         // on rank 0, if it was not started by this program
};

enum class ProcessEnd { done, refused, failed };

ProcessEnd measure_process(const ProcessRequest& request);

} // namespace triax::bench
