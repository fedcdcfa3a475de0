// SPDX-License-Identifier: Apache-2.0
// Schedulers: pure functions from a shape to rows of compute actions.
//
// Threads: any; a scheduler uses no device and no network. Ownership: values. Blocking: never. Errors: Error. Equal
// shapes must give equal schedules. The core lowers the rows (adds transfers, gradient reductions and the optimizer
// step), verifies, draws and runs them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "triax/error.hpp"
#include "triax/export.hpp"
#include "triax/extension.hpp"

namespace triax {

inline constexpr std::uint32_t kSchedulerInterface = 2;

/// F forward, B whole backward, I input gradient, W weight gradient.
enum class ComputeKind : std::uint16_t { forward, backward, backward_input, backward_weight };

struct Action {
  ComputeKind kind = ComputeKind::forward;
  std::int16_t replica = 0; // pipeline of a bidirectional schedule
  std::int32_t stage = 0;   // 0 .. pipeline*chunks - 1
  std::int32_t microbatch = 0;
  std::int32_t slice = 0; // of the sequence
  bool operator==(const Action&) const = default;
};

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

TRIAX_API std::string to_text(const Action& action); // PyTorch's form: "3F1"

struct PipelineShape {
  int pipeline = 1;     // p, pipeline ranks
  int chunks = 1;       // v, model chunks per rank
  int microbatches = 1; // m
  int stages() const { return pipeline * chunks; }
};

/// One row of actions per pipeline rank, and the stage map: the rank of each stage.
class TRIAX_API Schedule {
 public:
  Schedule() = default;
  Schedule(const PipelineShape& shape, std::vector<int> stage_rank)
      : rows_(static_cast<std::size_t>(shape.pipeline)), stage_rank_({std::move(stage_rank)}) {}

  std::vector<Action>& row(int rank) { return rows_.at(static_cast<std::size_t>(rank)); }
  const std::vector<Action>& row(int rank) const { return rows_.at(static_cast<std::size_t>(rank)); }
  int ranks() const { return static_cast<int>(rows_.size()); }
  /// stage_rank()[replica][stage]
  const std::vector<std::vector<int>>& stage_rank() const { return stage_rank_; }

  /// Number of steps by which weights lag behind; 0: synchronous.
  int delay = 0;

 private:
  std::vector<std::vector<Action>> rows_;
  std::vector<std::vector<int>> stage_rank_;
};

/// The stage map with stage s on rank s, for schedules with one chunk per rank.
TRIAX_API std::vector<int> one_stage_per_rank(const PipelineShape& shape);

class TRIAX_API Scheduler : public Extensible {
 public:
  using Interface = Scheduler;
  static constexpr const char* kKind = "scheduler";
  static constexpr std::uint32_t kInterfaceVersion = kSchedulerInterface;

  virtual ~Scheduler();
  virtual Refusals supports(const PipelineShape& shape) const = 0;
  /// Called only for a shape that supports() accepts.
  virtual Schedule rows(const PipelineShape& shape) const = 0;
};

} // namespace triax
