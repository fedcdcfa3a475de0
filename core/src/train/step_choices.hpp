// SPDX-License-Identifier: Apache-2.0
// memory.recompute = "optimal": what each block recomputes, from the costs of its steps and the memory of its rank.
//
// Threads: the main thread. Blocking: creates the layers of each pipeline rank and dry-runs blocks, and computes;
// chosen_programs() may wait for another rank. Errors: those of plugins and of the solver.
#pragma once

#include "train/preflight.hpp"
#include "train/rank_setup.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

/// Why the run's plugins cannot recompute so: blocks without RecomputeSteps, or with wrong lists; a build without the
/// solver. None if no stage has "optimal".
Refusals check_recompute_steps(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins);

/// Sets `programs` to make_programs() with the choice: R is in the programs of stages whose last block recomputes
/// something. The choice depends on the run, its plugins and the cluster file only, and is made for the first of the
/// ranks that have the same stages. Refuses a budget that the least choice of a rank exceeds. Throws what
/// make_programs() throws.
Refusals choose_steps(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                      const Schedule& schedule, Programs& programs);

/// make_programs() with the choice. For each stage, the first rank that has it chooses, and the others take its choice
/// from the job's store, until the deadline: ranks that repeat different collectives would wait for each other
/// indefinitely. Throws what check_recompute_steps() and choose_steps() refuse.
Programs chosen_programs(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
                         const Schedule& schedule, Store& store, Deadline deadline);

/// Steps are chosen for the first tensor rank. Refuses other ranks whose larger parts exceed the budget.
Refusals check_budget(const config::RunConfig& run, const Programs& programs, const RankPlan& plan);

} // namespace triax::train
