// SPDX-License-Identifier: Apache-2.0
// Verifier: checks that a schedule, and then the programs lowered from it, are a complete and correct training step.
//
// Threads: pure functions. Errors: violations are returned, not thrown. All violations that can be distinguished are
// listed. A check that is only meaningful after another check has passed is skipped until then.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "schedule/program.hpp"
#include "schedule/violation.hpp"

namespace triax::schedule {

/// Checks all rows: stages and microbatches exist; each stage is on one rank and its actions are in that rank's row; no
/// action is missing or repeated; F is before B or I, and I before W; I and W of a stage are in ascending order of
/// microbatches; all ranks can reach the end of their row. Returns the violations; empty: verified.
std::vector<Violation> verify(const Schedule& schedule, const PipelineShape& shape);

/// The part of this that reads no action: one row per rank, and a stage map of all stages and ranks.
std::vector<Violation> verify_stage_map(const Schedule& schedule, const PipelineShape& shape);

/// The purpose of the programs.
struct Purpose {
  PipelineShape shape;
  bool forward_only = false;
  std::optional<int> cap = std::nullopt; // maximum microbatch chunks in flight on a rank
};

/// Checks the programs of all pipeline ranks: no action is missing or repeated; what an action needs is before it;
/// gradients are in ascending order of microbatches; a slot is free when it is filled, filled when it is read, and no
/// pending transfer uses it; both ends of an edge have the same order; nothing deadlocks (graph.hpp). Returns the
/// violations; empty: verified.
///
/// Some programs that would run correctly are rejected. Gradients in another order would give other bits. Different
/// orders at the ends of an edge would need message tags, which the executor does not send. An action must name the
/// transfers that it waits for: the verifier does not infer from blocking posts, or from other transfers and ranks,
/// that a transfer is complete.
std::vector<Violation> verify(std::span<const Program> programs, const Purpose& purpose,
                              const Assumptions& assumptions);

} // namespace triax::schedule
