// SPDX-License-Identifier: Apache-2.0
// One rank of a measurement: joins both sides, checks their results, and times their turns.
//
// Threads: the rank's thread. Ownership: borrows what RankJob refers to. Blocking: until all ranks have measured all
// sizes, or one has failed. Errors: not thrown: they set the abort flag, which ends the other ranks. The rank's
// communicators exist until then, because others still use them.
#pragma once

#include <functional>
#include <string_view>

#include "bench/comm_side.hpp"
#include "control/abort_flag.hpp"

namespace triax::bench {

struct RankJob {
  const CommPlan& plan;
  RankSeat seat;
  Store& store;
  control::JobAbort& abort;
  std::function<void(const SizeResult&)> report; // called on rank 0 after each size
  std::function<void(std::string_view why)> failed =
      {};                            // before other ranks learn of this rank's failure; may be empty
  std::function<void()> finish = {}; // waits for all ranks to have measured; may be empty
};

void measure_rank(const RankJob& job);

} // namespace triax::bench
