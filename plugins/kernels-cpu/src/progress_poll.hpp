// SPDX-License-Identifier: Apache-2.0
// Advances communication while the rank computes: polls the device's transports, at most every 50 us.
//
// Threads: the rank's main thread.
#pragma once

#include "triax/device.hpp"

namespace triax::kernels_cpu {

class ProgressPoll {
 public:
  explicit ProgressPoll(Device& device) : device_(&device) {}

  void operator()() noexcept {
    const auto now = Clock::now();
    if (now < next_) return;
    device_->progress();
    next_ = Clock::now() + kInterval;
  }

 private:
  static constexpr std::chrono::microseconds kInterval{50};
  Device* device_;
  Clock::time_point next_{};
};

} // namespace triax::kernels_cpu
