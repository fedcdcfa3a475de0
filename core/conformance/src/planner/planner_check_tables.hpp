// SPDX-License-Identifier: Apache-2.0
// The tables of the planner suite, and the searches that their checks make.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formula_costs.hpp"
#include "triax/conformance/planner_checks.hpp"

namespace triax::conformance {

using PlannerCheck = CheckOf<PlannerSubject>;

std::span<const PlannerCheck> plan_answer_checks();
std::span<const PlannerCheck> plan_search_checks();

/// A search, and what it has returned.
struct Search {
  FormulaCosts& costs;
  int count;
  std::string text; // "16 ranks, 1/2 of the plans fit, count 3"
  std::vector<TrainingPlan> answer{};
};

/// Searches once; false if it throws. That is a failure, unless the planner has asked for a plan that is not in the
/// space, which the check of P2 reports.
bool run_search(Planner& planner, Search& search, Report& report);

/// Calls `body` after each of some searches, which are not stopped: spaces, memory limits, refusals and counts. A
/// search that has thrown is left out.
void for_searches(const PlannerSubject& subject, Report& report, const std::function<void(const Search&)>& body);
/// The same; `ended` is false after a search that has thrown.
void for_all_searches(const PlannerSubject& subject, Report& report,
                      const std::function<void(const Search&, bool ended)>& body);

/// Fails for each breach of the clause `P<number>`, of P1 to P5, by the answer of a search.
void check_answer(char number, const Search& search, Report& report);

/// Empty if two answers are equal; else where they first differ.
std::string answer_difference(const std::vector<TrainingPlan>& a, const std::vector<TrainingPlan>& b);

} // namespace triax::conformance
