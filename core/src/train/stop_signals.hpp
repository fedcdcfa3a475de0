// SIGINT and SIGTERM as a wish to stop after the current step; the second one ends the process at once.
//
// Threads: made on the thread that starts the run, before it starts others, so that all of them leave the signals to
// this object's own thread. One at a time in a process. Ownership: owns its thread; the signal mask comes back with the
// object's end. Blocking: the destructor waits for the thread, a tenth of a second at most.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

#include "triax/log.hpp"

namespace triax::train {

class StopSignals {
 public:
  explicit StopSignals(Log& log);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The number of the signal, or 0.
  int caught() const noexcept { return caught_.load(); }

 private:
  void watch(const std::stop_token& stop);

  Log& log_;
  sigset_t signals_{}, mask_before_{};
  std::atomic<int> caught_{0};
  std::jthread thread_;
};

} // namespace triax::train
