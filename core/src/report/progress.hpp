// Progress of a run on stderr: a bar on a terminal, else a line every ten seconds, never colour where NO_COLOR is set.
//
// Threads: one. Ownership: borrows the stream. Blocking: writes to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "report/step_record.hpp"

namespace triax::report {

class Progress {
 public:
  /// `terminal` and `colour` are what the caller found out about `out` (see for_stderr).
  Progress(std::ostream& out, bool terminal, bool colour, int columns, std::int64_t steps);
  static Progress for_stderr(std::int64_t steps);

  void update(const StepRecord& record);
  /// Takes the bar away and leaves the last state as a line.
  void finish();

 private:
  std::string line(bool bar) const;

  std::ostream* out_;
  bool terminal_, colour_;
  int columns_;
  std::int64_t steps_;
  StepRecord last_;
  double smoothed_ms_ = 0;
  std::chrono::steady_clock::time_point last_written_{};
};

} // namespace triax::report
