// SPDX-License-Identifier: Apache-2.0
// Signals that end the process at once, with a last text: while nothing has begun that could be stopped in order.
// SIGINT, SIGTERM, SIGHUP and SIGUSR1 write their text to a descriptor, and exit with status 128 + the number of the
// signal. A signal that was ignored when the process started stays ignored.
//
// Threads: made and destroyed by one thread, in a program without other threads; at most one per process. A child made
// by fork() ends at these signals without the text. Blocking: a signal blocks while the text is written.
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <iterator>
#include <string>

#include "os/stop_signals.hpp"

namespace triax::os {

class EndingSignals {
 public:
  /// Calls text_of for each signal now, because a signal handler can call almost nothing.
  EndingSignals(int descriptor, const std::function<std::string(int signal)>& text_of);
  ~EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

 private:
  struct Answer {
    int signal = 0;
    std::string text;
    struct sigaction before {};
    bool is_set = false;
  };
  static void handle(int signal);

  const int descriptor_;
  const pid_t process_;
  std::array<Answer, std::size(kStopSignals)> answers_;
};

} // namespace triax::os
