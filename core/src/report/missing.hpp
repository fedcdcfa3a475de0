// SPDX-License-Identifier: Apache-2.0
// Counts what a run could not write to its folder, for the summary at the end.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <string>

namespace triax::report {

struct Missing {
  std::int64_t records = 0;   // missing step records
  std::int64_t log_lines = 0; // missing lines in all logs
  std::int64_t timelines = 0; // files
  std::int64_t checkpoints = 0;
  std::int64_t events = 0; // missing events of TensorBoard

  bool any() const { return records != 0 || log_lines != 0 || timelines != 0 || checkpoints != 0 || events != 0; }
  void add(const Missing& other);
};

/// "3 of 10 records, 1 line of logs"; empty if nothing is missing. `records`: number that should be written.
std::string to_text(const Missing& missing, std::int64_t records);

} // namespace triax::report
