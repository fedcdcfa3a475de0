// SPDX-License-Identifier: Apache-2.0
// The pipeline ranks that can need most memory, so that a search plans these only.
//
// Threads: any. Ownership: borrows for the call. Errors: those of the model's layers.
#pragma once

#include <span>
#include <vector>

#include "executor/split.hpp"
#include "train/rank_setup.hpp"

namespace triax::train {

/// The kind of each layer of a model, from 0. Layers of one kind differ in nothing but their number: parameters, costs,
/// tensors, with their sizes in `context`, and which of them CheapRecompute lists.
std::vector<int> layer_kinds(const Model& model, const LayerContext& context);

/// Whether each layer of `stages` has the same kind in both contexts. Then ranks with these
/// stages need the same memory.
bool have_equal_layers(const Model& model, std::span<const executor::StageLayers> split, std::span<const int> stages,
                       const LayerContext& one, const LayerContext& other);

/// The pipeline ranks of `programs`, ascending, without those that another covers: it has as many stages, neither has
/// the first or the last stage, and in each stage it has at least as many layers of each kind, and slots of each pool,
/// and the same recomputation. `kinds`: see layer_kinds().
std::vector<int> ranks_of_most_memory(const Programs& programs, std::span<const executor::StageLayers> split,
                                      std::span<const int> kinds, const config::RunConfig::MemoryKeys& memory = {});
/// The same of programs with these pools, of a run whose stages all have one value of memory.recompute.
std::vector<int> ranks_of_most_memory(const ProgramSlots& slots, const schedule::StageMap& stage_map,
                                      std::span<const executor::StageLayers> split, std::span<const int> kinds);

} // namespace triax::train
