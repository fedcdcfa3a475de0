// SPDX-License-Identifier: Apache-2.0
// Marks an exception that leaves a wait for others: a plugin that waits is not at fault.
//
// Threads: the rank's main thread. Blocking: never.
#pragma once

#include <exception>

#include "triax/rank_activity.hpp"

namespace triax::device {

class WaitFailure {
 public:
  WaitFailure() noexcept : exceptions_(std::uncaught_exceptions()) {}
  ~WaitFailure() {
    RankActivity* const activity = RankActivity::current();
    if (activity && std::uncaught_exceptions() > exceptions_) activity->fail_in_wait();
  }
  WaitFailure(const WaitFailure&) = delete;
  WaitFailure& operator=(const WaitFailure&) = delete;

 private:
  const int exceptions_; // in progress when it began
};

} // namespace triax::device
