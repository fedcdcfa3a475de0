// SPDX-License-Identifier: Apache-2.0
// Schedulers: pure functions from a shape to rows of compute actions.
//
// Threads: any; a scheduler uses no device and no network. Ownership: values. Blocking: never. Errors: Error. Equal
// shapes must give equal schedules. The core lowers the rows (adds transfers, gradient reductions and the optimizer
// step), verifies, draws and runs them.
// The contract is at the end of this file; S3 to S6 are what the verifier requires of rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "triax/error.hpp"
#include "triax/export.hpp"
#include "triax/extension.hpp"

namespace triax {

/// Version of the interface; docs/plugins/changelog.md has its history.
inline constexpr std::uint32_t kSchedulerInterface = 2;

/// F forward, B whole backward, I input gradient, W weight gradient.
enum class ComputeKind : std::uint16_t { forward, backward, backward_input, backward_weight };

/// One pass of a microbatch on a stage. `replica` and `slice` are the number of a second pipeline that runs through the
/// same ranks in the other direction, and the number of a part of the sequence. Published schedules and their CSV
/// files have both, so an action can name them and a report can show them. No program runs them: the verifier refuses
/// values other than 0.
struct Action {
  ComputeKind kind = ComputeKind::forward;
  std::int16_t replica = 0;
  std::int32_t stage = 0;      // 0 .. pipeline*chunks - 1
  std::int32_t microbatch = 0; // 0 .. microbatches - 1
  std::int32_t slice = 0;
  bool operator==(const Action&) const = default;
};

/// The action of this kind.
/// @{
inline Action forward(int stage, int microbatch) {
  return {ComputeKind::forward, 0, stage, microbatch, 0};
}
inline Action backward(int stage, int microbatch) {
  return {ComputeKind::backward, 0, stage, microbatch, 0};
}
inline Action backward_input(int stage, int microbatch) {
  return {ComputeKind::backward_input, 0, stage, microbatch, 0};
}
inline Action backward_weight(int stage, int microbatch) {
  return {ComputeKind::backward_weight, 0, stage, microbatch, 0};
}
/// @}

/// PyTorch's form: "3F1".
TRIAX_API std::string to_text(const Action& action);

/// The sizes that a schedule depends on.
struct PipelineShape {
  int pipeline = 1;     // p, pipeline ranks
  int chunks = 1;       // v, model chunks per rank
  int microbatches = 1; // m
  /// Number of stages.
  int stages() const { return pipeline * chunks; }
};

/// One row of actions per pipeline rank, and the stage map: the rank of each stage, which must be given for all stages.
/// A stage is a model chunk: of the p*v stages, each rank has at least one, and usually v.
class TRIAX_API Schedule {
 public:
  Schedule() = default;
  Schedule(const PipelineShape& shape, std::vector<int> stage_rank)
      : rows_(static_cast<std::size_t>(shape.pipeline)), stage_rank_({std::move(stage_rank)}) {}

  /// The actions of a pipeline rank, of 0 to ranks() - 1, and the number of these ranks.
  /// @{
  std::vector<Action>& row(int rank) { return rows_.at(static_cast<std::size_t>(rank)); }
  const std::vector<Action>& row(int rank) const { return rows_.at(static_cast<std::size_t>(rank)); }
  int ranks() const { return static_cast<int>(rows_.size()); }
  /// @}
  /// stage_rank()[replica][stage]; one replica.
  const std::vector<std::vector<int>>& stage_rank() const { return stage_rank_; }

 private:
  std::vector<std::vector<Action>> rows_;
  std::vector<std::vector<int>> stage_rank_;
};

/// The stage map with stage s on rank s, for schedules with one chunk per rank.
TRIAX_API std::vector<int> one_stage_per_rank(const PipelineShape& shape);

/// A plugin of the kind scheduler: creates a schedule for a shape.
class TRIAX_API Scheduler : public Extensible {
 public:
  using Interface = Scheduler;
  static constexpr const char* kKind = "scheduler";
  static constexpr std::uint32_t kInterfaceVersion = kSchedulerInterface;

  virtual ~Scheduler();
  /// Every reason why rows() does not support the shape; empty if it does.
  virtual Refusals supports(const PipelineShape& shape) const = 0;
  /// Called only for a shape that supports() accepts. Called on every rank of a run, each of which uses its own row,
  /// and by the checks before the run.
  virtual Schedule rows(const PipelineShape& shape) const = 0;
};

} // namespace triax

// Contract
//
// [S1] supports() accepts a shape, or refuses it: each reason has a message, and the full names of the configuration
//      keys that the user can change ("parallel.chunks"). It does not throw, and it accepts at least one shape.
// [S2] supports() and rows() depend on the options and the shape only. All calls, objects and threads get the same
//      answer, because every rank computes the schedule of all ranks.
// [S3] A schedule has a row for each pipeline rank and one pipeline (replica 0); its stage map gives each stage a rank
//      in [0, p), and each rank at least one stage.
// [S4] Each stage has F of every microbatch once, and either B once, or I and W once each, all in the row of its rank.
//      Microbatches of a stage may differ in that. Actions name the whole sequence (slice 0).
// [S5] A row is executed in its order: F of a microbatch is before its B or I, and I before W. On each stage, the input
//      gradients (of B and I) are in ascending order of microbatches, and so are the weight gradients (of B and W):
//      they are added in that order, so every schedule gives the same bits. Forwards may be in any order.
// [S6] All ranks reach the end of their rows: F waits for F of the stage before, B and I for B or I of the stage after.
//      This holds with every communicator, also with one queue per device and sends that block until they are received,
//      and for the forwards alone, in the order of the rows, which are an evaluation.
// [S7] Each value of an option within its limits gives a refusal by S1 or rows by S3 to S6, and so does its default.
