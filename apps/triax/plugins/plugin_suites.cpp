// SPDX-License-Identifier: Apache-2.0
#include "plugins/plugin_suites.hpp"

#include "plugins/communicator_suite.hpp"
#include "plugins/kernel_suite.hpp"
#include "plugins/model_suite.hpp"
#include "plugins/optimizer_suite.hpp"
#include "plugins/planner_suite.hpp"
#include "plugins/scheduler_suite.hpp"
#include "triax/communicator.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"
#include "triax/optimizer.hpp"
#include "triax/planner.hpp"
#include "triax/scheduler.hpp"

namespace triax::app {

namespace {

constexpr KindOfSuite kKinds[] = {
    {.kind = CommBackend::kKind, .make = communicator_suite, .has_ranks = true, .uses_kernels = true},
    {.kind = Scheduler::kKind, .make = scheduler_suite},
    {.kind = Model::kKind,
     .make = model_suite,
     .settings = small_model_settings,
     .uses_kernels = true,
     .default_kernels = "kernels-reference"},
    {.kind = Optimizer::kKind, .make = optimizer_suite},
    {.kind = KernelSet::kKind, .make = kernel_suite},
    {.kind = Planner::kKind, .make = planner_suite},
};

} // namespace

std::span<const KindOfSuite> kinds_of_suites() {
  return kKinds;
}

} // namespace triax::app
