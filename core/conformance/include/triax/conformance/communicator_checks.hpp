// SPDX-License-Identifier: Apache-2.0
// The conformance suite of communicators. Its clauses C1 to C36 are in triax/communicator.hpp, and
// docs/plugins/communicators.md explains them.
//
// Threads, blocking, errors: as check.hpp. Ownership: checks keep a copy of the subject.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "triax/communicator.hpp"
#include "triax/conformance/check.hpp"
#include "triax/conformance/rank.hpp"

namespace triax::conformance {

/// The backend that the suite checks.
struct CommunicatorSubject {
  std::string name; // "comm-mine"
  RankSetup setup;
  CommTraits traits; // what the backend declares
  int max_group = 5; // groups of 2 to this many members are tested; at least 3
  /// The number of allocations that the calling thread has made (allocations.hpp); empty: not counted.
  std::function<std::size_t()> allocations;
};

/// The suite for this subject.
std::vector<Check> communicator_checks(const CommunicatorSubject& subject);

} // namespace triax::conformance
