// SPDX-License-Identifier: Apache-2.0
// The conformance suite of schedulers. Its clauses S1 to S7 are at the end of triax/scheduler.hpp. The checks ask for a
// sweep of shapes: each is refused with reasons, or its rows are verified.
//
// Threads, blocking, errors: as check.hpp. Ownership: checks keep a copy of the subject.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "triax/conformance/check.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/scheduler.hpp"

namespace triax::conformance {

/// Something wrong with a schedule, by the clause that it breaks.
struct ScheduleViolation {
  std::string clause;  // "S3" to "S6"
  std::string message; // "rank 2, action 3, 2B0: it needs 2F0, which comes later, at action 5"
};

/// Ranks that create objects of the scheduler.
inline constexpr int kSubjectRanks = 8;

/// The scheduler that the suite checks.
struct SchedulerSubject {
  std::string name; // "sched-mine"
  /// Creates an object with the options under test, as a rank of a layout of kSubjectRanks does it.
  std::function<Object<Scheduler>(int rank)> scheduler;

  /// The same with another value of one option.
  struct Variant {
    std::string option; // "group = 16777216"
    std::function<Object<Scheduler>(int rank)> scheduler;
  };
  std::vector<Variant> variants;

  /// The verifier of the engine; `triax plugins test` has it. Empty: the checks that need it are skipped.
  std::function<std::vector<ScheduleViolation>(const Schedule&, const PipelineShape&)> verify;
};

/// The suite for this subject.
std::vector<Check> scheduler_checks(const SchedulerSubject& subject);

} // namespace triax::conformance
