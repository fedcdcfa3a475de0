// SPDX-License-Identifier: Apache-2.0
// The suite of communicators: its tables, in the order in which an author needs what they test.
#include "communicator_check_tables.hpp"

namespace triax::conformance {

std::vector<Check> communicator_checks(const CommunicatorSubject& subject) {
  std::vector<Check> out;
  for (const auto table : {life_checks(), collective_checks(), movement_checks(), transfer_checks(), post_checks(),
                           count_checks(), abort_checks(), loss_checks()})
    for (Check& check : bind_checks(table, subject)) out.push_back(std::move(check));
  return out;
}

} // namespace triax::conformance
