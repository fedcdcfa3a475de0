// SPDX-License-Identifier: Apache-2.0
// The result of a search, as text and as JSON.
//
// Ownership: borrows the arguments and the request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/link_traffic.hpp"
#include "plan/plan_search.hpp"
#include "plan/run_search.hpp"

namespace triax::app {

struct SearchReport {
  const SearchArguments& arguments;
  const plan::SearchRequest& request;
  std::vector<plan::PlanKey> set{}; // the keys of --set, with their values as TOML
  std::string planner{};
  plan::SearchResult result{};
  std::vector<plan::Alternative> alternatives{}; // with --explain
  std::optional<plan::RankedPlan> least{};       // if no plan fits
  Refusals refusals{};                           // of the first plan, if plugins refuse all
  Refusals cheap_refusals{};                     // see PlanAcceptance::cheap_refusals()
  double relative_error = 0;                     // of the best plan's step time
  std::vector<plan::AxisTraffic> traffic{};      // of the best plan
};

std::string to_text(const SearchReport& report);
std::string to_json(const SearchReport& report);

/// "parallel.pipeline = 8, parallel.tensor = 8, ..."
std::string settings_text(const plan::SearchRequest& request, const plan::RankedPlan& plan);

} // namespace triax::app
