// SPDX-License-Identifier: Apache-2.0
// The choice of what the blocks of a pipeline rank recompute: an integer program over the tensors and steps of each
// block, after Checkmate (Jain et al., MLSys 2020, arXiv 1910.02653). The backward and the order of steps are given, so
// that a tensor is computed again once, directly before the backward of its block.
//
// Threads: any. Blocking: computes. Errors: those of the solver.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace triax::cost {

/// The tensors and steps of the blocks of a stage, which are alike.
struct StepGraph {
  /// Bytes of a tensor that outlives the forward, for all microbatches in flight.
  struct Tensor {
    std::string name;
    std::int64_t kept = 0;    // of each block that keeps it
    std::int64_t dropped = 0; // of each block that recomputes it: from the input gradient to the weight gradient
    std::int64_t shared = 0;  // once in the rank, if a block recomputes it
  };
  /// As RecomputeStep.
  struct Step {
    std::string name;
    std::int64_t time = 0; // at least 1, in the unit of the problem
    std::vector<int> writes, reads;
  };
  std::vector<Tensor> tensors;
  std::vector<Step> steps; // in the order in which they run
  int blocks = 0;
  std::int64_t shared = 0; // bytes of the rank within a call of a block, beside recomputed tensors
};

/// The stages of a rank whose blocks are chosen for.
struct StepProblem {
  std::vector<StepGraph> stages;
  std::int64_t fixed = 0;  // bytes of all else
  std::int64_t shared = 0; // bytes within a call of any other layer: blocks use the same memory
  std::int64_t budget = 0; // for all activations of the rank
};

/// The choice for a block: ascending numbers of the steps that it runs again, and of the tensors that it does not keep.
struct BlockSteps {
  std::vector<int> steps, dropped;
  bool operator==(const BlockSteps&) const = default;
};

struct StepChoice {
  std::vector<std::vector<BlockSteps>> blocks; // by stage
  std::int64_t time = 0;                       // of all steps of a microbatch
  std::int64_t bytes = 0;                      // of all activations
};

/// Why a block cannot recompute so: empty, or the first tensor that does not exist where it is needed.
std::string wrong_steps(const StepGraph& graph, const BlockSteps& block);

/// Sets the time and bytes of a choice.
void evaluate(const StepProblem& problem, StepChoice& choice);

/// Sets in which the blocks of a stage choose alike: 1, 1, 2, 4, ... and the rest. Every number of blocks is the sum of
/// some of them.
std::vector<int> block_sets(int blocks);

/// A choice within the budget, of the least time up to a thousandth; or, in a large problem, of the least time that a
/// bounded search finds. It keeps no tensor that its steps write, unless that needs less memory. Empty if no choice is
/// within the budget.
std::optional<StepChoice> choose_steps(const StepProblem& problem);

/// The choice of least bytes.
StepChoice smallest_steps(const StepProblem& problem);

} // namespace triax::cost
