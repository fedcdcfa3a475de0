// SPDX-License-Identifier: Apache-2.0
// Time of a step on a pipeline whose ranks post their transfers, as the executor does: no pass waits for a transfer
// but the one that reads what it brings. pipeline_cost.hpp has programs whose transfers hold both ends.
//
// A message leaves when its pass has ended and the NIC of the rank has sent the messages before it. Gradients of a
// stage are reduced, and weights are gathered, in the order of their posts, beside the passes. Lowering has the same
// rules; without its programs a step is timed in the time that it takes to read the rows.
//
// Threads: pure functions, but a PostedPasses has one user. Errors: none.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "cost/pipeline_cost.hpp"
#include "cost/posted_rows.hpp"

namespace triax::cost {

struct PostedTimes {
  struct Stage {
    double forward_s = 0, input_s = 0, weight_s = 0; // of a microbatch; a whole backward takes input and weight
    double reduce_s = 0;                             // of its gradients, once per step
    double weights_s = 0;                            // to gather its weights, each time
    double recompute_s = 0;                          // of R, before the gradient of a microbatch has arrived
  };
  std::vector<Stage> stages;
  std::vector<LinkTime> links; // one fewer
  int prefetch = -1;           // unshard intervals for which weights are gathered ahead; -1: weights are not sharded
};

/// When a rank has ended its last pass, and when the gradients of its stages are reduced.
struct PostedEnds {
  RankEnds passes, reductions;
};

/// Times all microbatches of the rows.
PostedEnds time_posted(const PostedRows& rows, const PostedTimes& times);

/// Three shapes with fewer microbatches than a long step has. A period is p microbatches: `longer` has less than a
/// given number of periods, `shorter` one period less, `shortest` two. The step is extrapolated from their times.
struct CutShapes {
  PipelineShape longer, shorter, shortest;
  int periods = 0; // cut off the shape to get `longer`; 0: `longer` is the shape, and the others are not used
};
inline constexpr int kFewPeriods = 5;
CutShapes cut_shapes(const PipelineShape& shape, int periods = kFewPeriods);

/// The rows of a shape, which stay valid; null: the scheduler does not support it.
using RowsOfShape = std::function<const PostedRows*(const PipelineShape&)>;

/// The same as time_posted() of all microbatches. Times more and more periods until each takes as long as the one
/// before on all ranks, and extrapolates the others.
PostedEnds posted_ends(const RowsOfShape& rows, const PipelineShape& shape, const PostedTimes& times);

/// The passes of a step whose weights are not sharded. Steps that differ in their reductions only are timed by one walk
/// through the rows.
class PostedPasses {
 public:
  /// Ignores Stage::reduce_s. PostedTimes::prefetch must be -1.
  explicit PostedPasses(PostedTimes times) : times_(std::move(times)) {}

  /// The same as posted_ends() with these reductions, by stage. `rows` must be the same in each call.
  PostedEnds ends(const RowsOfShape& rows, const PipelineShape& shape, std::span<const double> reduce_s);

 private:
  struct Walked {
    RankEnds passes;
    std::vector<double> backwards; // end of the last backward of each stage
  };
  PostedTimes times_;
  std::map<const PostedRows*, Walked> walked_;
};

} // namespace triax::cost
