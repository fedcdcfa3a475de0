// SPDX-License-Identifier: Apache-2.0
// Progress of the start of a run on stderr: "starting: 37 of 128 ranks joined, waiting for ranks 3, 7-96 to join". On a
// terminal, one line that is redrawn; else a line after two seconds and then every ten. A quick start prints nothing.
//
// Ownership: borrows the stream. Blocking: writes to stderr.
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>

#include "report/progress.hpp"

namespace triax::report {

struct StartState {
  int joined = 0; // ranks that have reached the job server
  int ready = 0;  // ranks that are ready for their first step
  int world = 0;
  std::string missing; // ranks that have not joined, or, if all have, that are not ready: "3, 7-96"
  bool over = false;   // all ranks are ready, or the start has failed: nothing more is drawn
};

class StartProgress {
 public:
  StartProgress(std::ostream& out, bool terminal, int columns, ProgressClock clock = &std::chrono::steady_clock::now);
  static StartProgress for_stderr();

  void update(const StartState& state);

 private:
  std::ostream* out_;
  bool terminal_;
  int columns_;
  ProgressClock clock_;
  std::chrono::steady_clock::time_point began_;
  std::optional<std::chrono::steady_clock::time_point> last_written_;
};

/// "starting: 37 of 128 ranks joined, waiting for ranks 3, 7-96 to join"; once all have joined: "starting: 12 of 128
/// ranks ready, waiting for ranks 0-115 to prepare the first step".
std::string to_text(const StartState& state);

} // namespace triax::report
