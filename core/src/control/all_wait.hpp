// SPDX-License-Identifier: Apache-2.0
// A failure in which every rank waits for another one: when it is reported, and its reason. The job server detects it
// for processes, the watchdog for threads.
#pragma once

#include <cmath>
#include <string>

#include "triax/text.hpp"

namespace triax::control {

/// Seconds after train.stall_timeout_s: a rank that is stuck in a call is reported first.
inline constexpr double kAllWaitMargin_s = 2;

inline std::string all_wait_text(double waiting_s) {
  return text("all ranks wait, but none makes progress; this one has waited for {} s", std::round(waiting_s * 10) / 10);
}

} // namespace triax::control
