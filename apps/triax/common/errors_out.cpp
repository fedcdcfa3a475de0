// SPDX-License-Identifier: Apache-2.0
#include "common/errors_out.hpp"

#include <iostream>

#include "base/printable.hpp"
#include "common/result_out.hpp"
#include "report/json.hpp"
#include "triax/text.hpp"

namespace triax::app {

void print_problem(std::string_view problem, bool as_json) {
  std::cerr << printable(problem) << '\n';
  if (as_json) result_out() << report::JsonObject().set("problem", problem).line() << '\n';
}

void print_warning(const Error& warning) {
  print_problem(text("warning: {}", warning.what()));
}

std::size_t shown_errors(std::size_t count) {
  constexpr std::size_t kMaxErrors = 20;
  // A single further error is printed rather than counted. It may be the number of the violations that are not shown.
  return count <= kMaxErrors + 1 ? count : kMaxErrors;
}

void print_errors(const std::vector<config::Diagnostic>& errors) {
  const std::size_t shown = shown_errors(errors.size());
  for (std::size_t i = 0; i < shown; ++i) print_problem(errors[i].text);
  if (shown < errors.size()) print_problem(text("... and {} more errors", errors.size() - shown));
}

} // namespace triax::app
