// SPDX-License-Identifier: Apache-2.0
// Runs this program as child processes, one after another, to measure: triax bench and triax train.
//
// Threads: the main thread. Ownership: borrows what its constructor gets. Blocking: until the child has ended. Errors:
// Error with the child's last lines; Interrupted after a stop signal, with the child killed.
#pragma once

#include <string>
#include <vector>

#include "os/stop_signals.hpp"
#include "os/terminal.hpp"

namespace triax::app {

/// A stop signal ended the measurement.
struct Interrupted {
  int signal = 0;
};

class CalibrationPrograms {
 public:
  /// `total`: number of runs, for the progress on a terminal.
  CalibrationPrograms(const os::StopSignals& signals, int total) : signals_(signals), total_(total) {}
  ~CalibrationPrograms();
  CalibrationPrograms(const CalibrationPrograms&) = delete;
  CalibrationPrograms& operator=(const CalibrationPrograms&) = delete;

  /// `what`: for the progress and for errors, such as "all_reduce".
  void run(const std::string& what, const std::vector<std::string>& arguments);
  /// Throws Interrupted after a stop signal.
  void throw_if_stopped() const;

 private:
  void show(const std::string& what);

  const os::StopSignals& signals_;
  const os::Terminal terminal_ = os::stderr_terminal();
  const int total_;
  int number_ = 0;
};

} // namespace triax::app
