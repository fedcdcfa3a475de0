// What a rank's run is made of before there is memory: programs, and the request for its state. Shared by preflight
// and the rank itself, so that what is checked is what runs.
//
// Threads: the rank's main thread. Ownership: owns programs and state; run, layout and plugins must outlive it.
// Blocking: computes. Errors: Error listing what was refused.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/rank_state.hpp"
#include "schedule/program.hpp"
#include "train/plugins.hpp"

namespace triax::train {

/// All that is wrong with the split and with the rows a scheduler made for this run.
std::vector<Support> check_schedule(const config::RunConfig& run, const Model& model, const Schedule& schedule);

struct Preparation {
  /// The schedule must have passed check_schedule.
  Preparation(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
              const Schedule& schedule);
  Preparation(const Preparation&) = delete; // the state refers to the programs
  Preparation& operator=(const Preparation&) = delete;

  schedule::Program training, evaluation;
  std::unique_ptr<executor::RankState> state;
  bool serial = false; // one of the communicators keeps a single order for all transfers

 private:
  /// Of all pipeline ranks: what this rank runs is what all of them were proved to run.
  void prove(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
             std::span<const schedule::Program> programs);
};

} // namespace triax::train
