// SPDX-License-Identifier: Apache-2.0
#include "common/refuse.hpp"

#include <ostream>

#include "common/errors_json.hpp"
#include "common/errors_out.hpp"
#include "common/result_out.hpp"

namespace triax::app {

std::vector<config::Diagnostic> diagnostics_of(const Refusals& refusals) {
  std::vector<config::Diagnostic> out;
  for (const Refusal& refusal : refusals) out.push_back(config::diagnose(refusal, {}));
  return out;
}

int refuse(const std::vector<config::Diagnostic>& errors, bool as_json, int status) {
  print_errors(errors);
  if (as_json) result_out() << errors_line(errors) << '\n';
  return status;
}

} // namespace triax::app
