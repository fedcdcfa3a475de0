// How a rank waits while nothing moves: between two polls of the pump, on top of the yield of the core's wait loops.
//
//   yield  nothing here: the wait loop gives the core away after every poll that found nothing.
//   spin   polls up to 2000 times more before it returns: for ranks that have a core each.
//   event  after half a millisecond in which nothing moved and this thread computed nothing, sleeps until UCX has
//          something, a millisecond at most: for ranks that share cores and wait long.
//
// Threads: the rank's main thread. Ownership: borrows the worker. Blocking: event, a millisecond at a time.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>

#include "settings.hpp"
#include "triax/device.hpp"

namespace comm_ucx {

class Idling {
 public:
  void start(Wait wait, ucp_worker_h worker);
  int extra_polls() const noexcept { return wait_ == Wait::spin ? 2000 : 0; }
  /// Something moved.
  void reset() noexcept { idle_since_ = {}; }
  /// Nothing moved, and a call is waiting.
  void idle() noexcept;

 private:
  void sleep() noexcept;

  Wait wait_ = Wait::yield;
  ucp_worker_h worker_ = nullptr;
  int file_ = -1;
  triax::Clock::time_point idle_since_{};
  std::int64_t computed_ns_ = 0; // this thread's processor time when it was last here
};

} // namespace comm_ucx
