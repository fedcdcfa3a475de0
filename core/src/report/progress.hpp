// SPDX-License-Identifier: Apache-2.0
// Progress of a run on stderr: a bar on a terminal, else a line every ten seconds. No colour if NO_COLOR is set.
//
// Ownership: borrows the stream. Blocking: writes to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "report/step_record.hpp"

namespace triax::report {

using ProgressClock = std::function<std::chrono::steady_clock::time_point()>;

class Progress {
 public:
  /// `terminal`, `colour`, `columns`: properties of `out` (see for_stderr()).
  Progress(std::ostream& out, bool terminal, bool colour, int columns, std::int64_t steps,
           ProgressClock clock = &std::chrono::steady_clock::now);
  static Progress for_stderr(std::int64_t steps);

  /// The first record is shown at once.
  void update(const StepRecord& record);
  /// Removes the bar and prints the last state as a line.
  void finish();
  /// Removes the bar and prints nothing, if the reason of the end is printed elsewhere.
  void clear();

 private:
  struct Shown {
    std::int64_t step = 0;
    double loss = 0, tokens_per_s = 0;
    std::optional<double> eval_loss; // of the last evaluation
    std::int64_t skipped = 0;        // number of steps so far
  };

  void write();
  std::optional<double> last_eval() const;
  std::string line(bool bar) const;
  static std::string joined(const std::vector<std::string>& parts, std::size_t count);

  std::ostream* out_;
  bool terminal_, colour_;
  int columns_;
  std::int64_t steps_;
  ProgressClock clock_;
  std::optional<Shown> last_;
  bool shown_ = false; // last_ is on the screen
  double smoothed_ms_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_written_;
};

} // namespace triax::report
