// SPDX-License-Identifier: Apache-2.0
// What a rank's run is made of before there is memory: programs, and the request for its state. Shared by preflight
// and the rank itself, so that what is checked is what runs.
//
// Threads: the rank's main thread. Ownership: owns the state; run, layout, plugins and programs must outlive it.
// Blocking: computes. Errors: Error listing what was refused.
#pragma once

#include <memory>
#include <vector>

#include "executor/rank_state.hpp"
#include "schedule/assumptions.hpp"
#include "schedule/program.hpp"
#include "train/plugins.hpp"

namespace triax::train {

/// What the layers of a rank are made for. `layout` must outlive it.
LayerContext layer_context(const config::RunConfig& run, const Layout& layout, int rank);

/// What is wrong with the split, and with the rows that a scheduler made for this run: of their violations the first,
/// and how many more there are.
std::vector<Support> check_schedule(const config::RunConfig& run, const Model& model, const Schedule& schedule);

/// The programs of all pipeline ranks, proved for the run's communicators.
struct Programs {
  std::vector<schedule::Program> training, evaluation;
  schedule::Assumptions assumptions; // with which they were
};
/// The schedule must have passed check_schedule. Throws Error with the first violation, and how many more there are.
Programs make_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                       const Schedule& schedule);

struct Preparation {
  Preparation(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
              const Programs& programs);

  const schedule::Program& training;
  const schedule::Program& evaluation;
  std::unique_ptr<executor::RankState> state;
};

} // namespace triax::train
