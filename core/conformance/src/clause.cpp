// SPDX-License-Identifier: Apache-2.0
#include "triax/conformance/clause.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::conformance {

const Clause& find_clause(std::string_view id) {
  const auto all = clauses();
  const auto found = std::ranges::find_if(all, [id](const Clause& clause) { return id == clause.id; });
  if (found == all.end()) throw Error(text("no public header has a clause {}", id), "a conformance check");
  return *found;
}

} // namespace triax::conformance
