// SPDX-License-Identifier: Apache-2.0
// A schedule in the form in which it is timed: all passes in one order, in which each is after the passes that it waits
// for. The order does not depend on times, so a search finds it once for each schedule.
//
// Threads: read-only after construction. Errors: Error if the rows cannot be completed.
#pragma once

#include <cstdint>
#include <vector>

#include "triax/scheduler.hpp"

namespace triax::cost {

struct PostedRows {
  /// The schedule must be verified.
  PostedRows(const Schedule& schedule, const PipelineShape& of);

  struct Pass {
    std::int32_t rank = 0, stage = 0;
    /// Slots of the tensors that the pass reads of, and writes for, a neighbour stage; -1: none. A slot is used again
    /// after it is read.
    std::int32_t reads = -1, writes = -1;
    std::int32_t link = -1; // between stages: the link that the written tensor takes; -1: it stays on the rank
    ComputeKind kind = ComputeKind::forward;
    bool ends_stage = false; // the last backward of its stage
  };
  PipelineShape shape;
  std::vector<int> stage_rank;
  std::vector<Pass> passes; // those of a rank in the order of its row
  int slots = 0;
  std::vector<std::int32_t> ended_stages; // in the order of their last backwards
  /// By rank and stage: peaks of the microbatches whose forward has begun, and whose backward has not ended, or whose
  /// input gradient is not made.
  /// @{
  std::vector<std::vector<int>> until_weight, until_input;
  /// @}
  std::vector<int> accumulating; // by rank: most stages at once that have begun, and not ended, their backwards
};

} // namespace triax::cost
