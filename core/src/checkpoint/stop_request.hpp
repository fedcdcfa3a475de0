// SPDX-License-Identifier: Apache-2.0
// Asks whether work on a checkpoint must be given up.
//
// Threads: that of the work.
#pragma once

#include <functional>

namespace triax::checkpoint {

/// Whether to give up; asked for each block. Empty: never.
using StopRequest = std::function<bool()>;

inline bool is_stopped(const StopRequest& stop) {
  return stop && stop();
}

} // namespace triax::checkpoint
