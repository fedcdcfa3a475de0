// metrics.jsonl: step records only, one JSON object a line, floats that read back to the same bits.
//
// Threads: one. Ownership: owns its file. Blocking: writes and flushes each line. Errors: Error naming the file, and
// the step of a record that JSON cannot hold.
#pragma once

#include <filesystem>
#include <fstream>

#include "report/step_record.hpp"

namespace triax::report {

class MetricsFile {
 public:
  /// Replaces the file. Throws Error naming it if it cannot be written.
  explicit MetricsFile(const std::filesystem::path& file);
  void write(const StepRecord& record);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

/// The line of a record, without its newline.
std::string to_json(const StepRecord& record);

} // namespace triax::report
