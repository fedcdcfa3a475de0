// SPDX-License-Identifier: Apache-2.0
// Stages with the same layers, and pipeline ranks with the same stages. There are few, so a bound that reads these
// instead of all layers takes a fraction of a microsecond.
//
// Threads: pure functions.
#pragma once

#include <span>
#include <vector>

#include "executor/split.hpp"
#include "plan/shape_schedules.hpp"
#include "triax/model.hpp"

namespace triax::plan {

/// The pipeline ranks of the two layers of a tie.
struct TieRanks {
  int a = 0, b = 0;
};

struct StageClasses {
  struct Stage {
    std::vector<int> blocks, others; // layers by kind: those that can be repeated, and all others
    int first_block = -1;            // kind of the first that can be repeated; -1: there is none
    bool operator==(const Stage&) const = default;
  };
  struct Rank {
    std::vector<int> stages; // classes of its stages, from the lowest on
    /// Ties both of whose layers the rank has, and where in `stages` the second is.
    struct Tied {
      std::size_t tie = 0, stage = 0;
      bool operator==(const Tied&) const = default;
    };
    std::vector<Tied> tied;
    /// Stages before the lowest of the rank, by class. Of equal ranks, the one with most such stages is kept.
    std::vector<int> before;
    int lowest = 0;
  };
  std::vector<Stage> stages;
  std::vector<Rank> ranks;
  std::vector<TieRanks> ties;
};

/// `kinds`: of each layer of the model; see train::layer_kinds(). `layers`: of each stage.
StageClasses classes_of(const Model& model, std::span<const int> kinds, std::span<const executor::StageLayers> layers,
                        const StageMapping& mapping);

} // namespace triax::plan
