// SPDX-License-Identifier: Apache-2.0
// How a rank waits while no message moves, between two polls of the progress loop. The core's wait loops also pause
// (triax/poll_pause.hpp).
//
//   yield  does nothing more: the wait loop yields the core after every poll without progress, or sleeps.
//   spin   polls up to 2000 times more before it returns: for ranks with a core each.
//   event  after 0.5 ms without progress and without computation on this thread, sleeps until UCX has an event, at most
//          1 ms: for ranks that share cores and wait long.
//
// Threads: the rank's main thread. Blocking: event only, 1 ms at a time.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>

#include "triax/device.hpp"
#include "ucx_settings.hpp"

namespace triax::comm_ucx {

class IdleStrategy {
 public:
  void start(Wait wait, ucp_worker_h worker);
  int extra_polls() const noexcept { return wait_ == Wait::spin ? 2000 : 0; }
  /// Call it when there was progress.
  void reset() noexcept { idle_since_ = {}; }
  /// Call it when there was no progress and a call is waiting.
  void idle() noexcept;

 private:
  void sleep() noexcept;

  Wait wait_ = Wait::yield;
  ucp_worker_h worker_ = nullptr;
  int file_ = -1;
  triax::Clock::time_point idle_since_{};
  std::int64_t computed_ns_ = 0; // this thread's CPU time at the last call
};

} // namespace triax::comm_ucx
