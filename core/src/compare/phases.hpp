// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes, from the timelines of all ranks: computation, communication that is not hidden behind
// it, waits for stages.
//
// Threads: pure functions. The ranks have one clock, that of this machine.
#pragma once

#include <map>
#include <span>
#include <string>

#include "report/timeline_file.hpp"

namespace triax::compare {

/// In ms, mean over the ranks. The parts add up to the whole step.
struct Phases {
  double forward = 0, backward = 0; // passes, without their waits for communication; R counts as backward
  double optimizer = 0;             // the norm and the update of the weights, without waits
  /// Waits for communication, by axis. For a transfer between stages, only the part of the wait after it was sent.
  std::map<std::string, double> exposed;
  double stage_wait = 0; // waits for a transfer between stages that the other stage had not sent
  double other = 0;      // between actions; the losses; waits at the end of the step
  double step = 0;       // from the first rank's start to the last rank's end
};

/// The phases of one step. `ranks`: all ranks of the run, by rank.
Phases phases_of(std::span<const report::RankTimeline> ranks);

} // namespace triax::compare
