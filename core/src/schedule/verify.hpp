// Proof that a schedule, and then the programs made from it, do what a step is.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: what does not hold is returned, never thrown.
// All faults of a kind that can be told apart are listed; checks that only make sense on what passed the earlier ones
// are left out until those pass.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "schedule/fault.hpp"
#include "schedule/program.hpp"

namespace triax::schedule {

/// Over all rows: known stages and microbatches, each stage on one rank and its actions in that rank's row, nothing
/// twice, nothing missing, F before B or I and I before W, I's and W's of a stage in ascending order of microbatches,
/// and an order in which all ranks get to their ends. Empty: proved.
std::vector<Fault> verify(const Schedule& schedule, const PipelineShape& shape);

/// What the programs are to do.
struct Purpose {
  PipelineShape shape;
  bool forward_only = false;
  std::optional<int> cap = std::nullopt; // the most microbatches that a rank may have in flight, counted per stage
};

/// Over the programs of all pipeline ranks: nothing missing and nothing twice; what each action needs comes before it;
/// gradients in ascending order of microbatches; a slot is free when it is filled, full when it is read, and no
/// transfer touches it still; both ends of an edge in one order; nothing waits in a circle (graph.hpp). Empty: proved.
///
/// Some that would go well are refused. Gradients in another order give other bits. An edge's ends in two orders need
/// tags, and the executor sends none. And what slots and meetings rely on is waited for by name: that a post blocks, or
/// that other transfers and ranks leave none under way, does not count.
std::vector<Fault> verify(std::span<const Program> programs, const Purpose& purpose, const Assumptions& assumptions);

} // namespace triax::schedule
