// SIGINT and SIGTERM as a wish to stop after the current step. By a user, a second one ends the process at once. Ranks
// under a launcher of ours hear of the wish from it, and it ends them if need be: to them a second one, of a terminal's
// Ctrl-C to all of its processes, is the same wish.
//
// Threads: made on the thread that starts the run, before it starts others, so that all of them leave the signals to
// this object's own thread. One at a time in a process. Ownership: owns its thread; the signal mask comes back with the
// object's end. Blocking: the destructor waits for the thread, a tenth of a second at most. Errors: the constructor
// throws Error if there is no thread to be had.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

#include "triax/log.hpp"

namespace triax::train {

class StopSignals {
 public:
  enum class From { user, launcher };
  explicit StopSignals(Log& log, From from = From::user);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The number of the signal, or 0.
  int caught() const noexcept { return caught_.load(); }
  /// Whether the first one ends the process at once: while a rank waits for others, there is no step to stop after.
  void end_at_once(bool at_once) noexcept { at_once_.store(at_once); }
  /// As if it had been caught. Any thread.
  void ask(int signal) noexcept { caught_.store(signal); }

 private:
  void watch(const std::stop_token& stop);

  Log& log_;
  const From from_;
  sigset_t signals_{}, mask_before_{};
  std::atomic<int> caught_{0};
  std::atomic<bool> at_once_{false};
  std::jthread thread_;
};

} // namespace triax::train
