// SPDX-License-Identifier: Apache-2.0
// The verified schedule of a source, from its scheduler or its file.
//
// Ownership: values; the scheduler object no longer exists. Errors: returned as problems.
#pragma once

#include <optional>
#include <vector>

#include "schedule/program.hpp"
#include "schedule/schedule_source.hpp"
#include "triax/scheduler.hpp"

namespace triax::app {

struct VerifiedSchedule {
  Schedule schedule;
  std::vector<schedule::Program> programs;    // of a step, by rank
  std::vector<config::Diagnostic> problems{}; // if not empty, there is no schedule
  int status = 0;                             // exit status of the subcommand
};

struct VerifyOptions {
  bool evaluation = true;                // whether to verify the forward-only programs too
  std::optional<int> cap = std::nullopt; // limit of microbatch chunks in flight per rank
  bool recomputes = false;               // R precedes the backwards of all stages; not of a file with programs
};

/// Verifies for communicators with the weakest guarantees.
VerifiedSchedule verify_schedule(const ScheduleSource& source, const VerifyOptions& options);

/// An error with the reason of `answer`, and the positions of what the user wrote.
VerifiedSchedule refused(const ScheduleSource& source, const Refusals& answer);

} // namespace triax::app
