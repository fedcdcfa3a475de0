// SPDX-License-Identifier: Apache-2.0
#include "common/errors_out.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "common/result_out.hpp"
#include "report/json.hpp"
#include "triax/text.hpp"

namespace triax::app {

void print_problem(std::string_view problem, bool as_json) {
  std::cerr << printable(problem) << '\n';
  if (as_json) result_out() << report::JsonObject().set("problem", problem).line() << '\n';
}

void print_refusals(const std::vector<std::string>& refusals) {
  const std::size_t shown = std::min(refusals.size(), kMaxRefusals);
  for (std::size_t i = 0; i < shown; ++i) print_problem(refusals[i]);
  if (shown < refusals.size()) print_problem(text("... and {} more errors", refusals.size() - shown));
}

std::string refusals_json(const std::vector<std::string>& refusals) {
  nlohmann::ordered_json out;
  add_refusals(out, refusals);
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace); // a path may be invalid UTF-8
}

} // namespace triax::app
