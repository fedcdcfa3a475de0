// SPDX-License-Identifier: Apache-2.0
// Marks an exception that leaves a wait for others: a plugin that waits is not at fault.
//
// Threads: the rank's main thread. Blocking: as the wait. Errors: those of the wait.
#pragma once

#include "triax/rank_activity.hpp"

namespace triax::device {

/// Runs `body`, which waits for others.
template <class Body>
decltype(auto) wait_for_others(const Body& body) {
  try {
    return body();
  } catch (...) {
    if (RankActivity* const activity = RankActivity::current()) activity->fail_in_wait();
    throw;
  }
}

} // namespace triax::device
