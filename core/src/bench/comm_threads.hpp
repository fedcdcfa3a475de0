// SPDX-License-Identifier: Apache-2.0
// Measures communicators whose ranks are threads of this process.
//
// Threads: starts one per rank, and joins them all; `report` is called on rank 0's. Ownership: borrows all. Blocking:
// until all ranks have ended. Errors: Error of the rank that failed first, with its number in front.
#pragma once

#include <functional>

#include "bench/comm_plan.hpp"
#include "triax/log.hpp"

namespace triax::bench {

/// `log`: of the plugins.
void measure_threads(const CommPlan& plan, const config::PluginChoice* kernels,
                     const std::function<void(const SizeResult&)>& report, Log& log = null_log());

} // namespace triax::bench
