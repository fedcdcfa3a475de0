// SPDX-License-Identifier: Apache-2.0
// Error of a wait that times out.
#pragma once

#include <string>

#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax {

[[noreturn]] inline void throw_timeout(const std::string& location) {
  if (RankActivity* const activity = RankActivity::current()) activity->time_out();
  throw Error("timed out", location,
              "another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout");
}

} // namespace triax
