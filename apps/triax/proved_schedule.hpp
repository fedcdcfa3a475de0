// SPDX-License-Identifier: Apache-2.0
// The schedule that a source asks for, made by its scheduler or read from its file, and proved.
//
// Threads: one. Ownership: values; the scheduler is gone when it is made. Blocking: never. Errors: what is refused and
// what does not hold is told as problems, never thrown.
#pragma once

#include <optional>
#include <vector>

#include "schedule/program.hpp"
#include "schedule_source.hpp"
#include "triax/scheduler.hpp"

namespace triax::app {

struct ProvedSchedule {
  Schedule schedule;
  std::vector<schedule::Program> programs; // of a step, by rank
  std::vector<config::Refusal> problems{}; // if any, there is nothing to show
  int status = 0;                          // exit status of the verb
};

struct Proof {
  bool evaluation = true;                // also of the programs that run the forwards alone
  std::optional<int> cap = std::nullopt; // the most microbatches that a rank may have in flight, counted per stage
};

/// For communicators that promise the least.
ProvedSchedule prove(const ScheduleSource& source, const Proof& proof);

/// A refusal in the words of `answer`, with the positions of what the source's user wrote.
ProvedSchedule refused(const ScheduleSource& source, const Support& answer);

} // namespace triax::app
