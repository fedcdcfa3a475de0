// SPDX-License-Identifier: Apache-2.0
// The conformance suite of planners. Its clauses P1 to P11 are at the end of triax/planner.hpp. The checks search small
// spaces, whose plans have times and sizes by a formula: no model and no cluster is needed.
//
// Threads, blocking, errors: as check.hpp. Ownership: checks keep a copy of the subject.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "triax/conformance/check.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/planner.hpp"

namespace triax::conformance {

/// The planner that the suite checks.
struct PlannerSubject {
  std::string name; // "plan-mine"
  /// Creates an object with the options under test.
  std::function<Object<Planner>()> planner;
};

/// The suite for this subject.
std::vector<Check> planner_checks(const PlannerSubject& subject);

} // namespace triax::conformance
