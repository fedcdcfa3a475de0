// SPDX-License-Identifier: Apache-2.0
#include "common/errors_out.hpp"

#include <iostream>

#include "base/printable.hpp"
#include "report/json.hpp"

namespace triax::app {

void print_problem(std::string_view problem, bool as_json) {
  std::cerr << printable(problem) << '\n';
  if (as_json) std::cout << report::JsonObject().set("problem", problem).line() << '\n';
}

} // namespace triax::app
