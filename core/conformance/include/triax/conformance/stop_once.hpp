// SPDX-License-Identifier: Apache-2.0
// Stops a rank in the middle of a wait, as SIGSTOP does.
//
// Threads: that of the rank. Ownership: the device refers to it; remove it before it is destroyed. Blocking: as the
// function does. Errors: none.
#pragma once

#include <functional>
#include <utility>

#include "triax/device.hpp"

namespace triax::conformance {

/// Calls `stop`, which sleeps, in the third round of the progress loop.
class StopOnce final : public ProgressSource {
 public:
  explicit StopOnce(std::function<void()> stop) : stop_(std::move(stop)) {}
  void progress() noexcept override {
    if (++rounds_ == 3) stop_();
  }

 private:
  std::function<void()> stop_;
  int rounds_ = 0;
};

} // namespace triax::conformance
