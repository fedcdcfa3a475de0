// SPDX-License-Identifier: Apache-2.0
// Reads the records of a metrics file, also while a run writes it.
//
// Threads: pure except for the file. Blocking: reads. Errors: Error with a file that cannot be read; lines that are not
// records are counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "report/step_record.hpp"

namespace triax::report {

/// A line as to_json() of metrics_file.hpp writes it; empty if it is not one. A number that is null or missing is NaN,
/// or empty if it is optional; unknown keys are ignored.
std::optional<StepRecord> read_record(std::string_view line);

struct MetricsRecords {
  std::vector<StepRecord> records; // in the order of the file
  std::int64_t damaged_lines = 0;  // that are not records
  std::int64_t first_damaged = 0;  // its number, from 1, among the lines that were read
  bool ends_within_line = false;   // the last line has no end yet, and was not read
  std::int64_t end = 0;            // where the complete lines end, in bytes of the file
};

/// `begin`: bytes of the file that were read before, such as the end of an earlier call.
MetricsRecords read_metrics(const std::filesystem::path& file, std::int64_t begin = 0);

/// The last record of each step, by step: a run that went back trains steps again.
std::vector<StepRecord> last_of_each_step(std::vector<StepRecord> records);

} // namespace triax::report
