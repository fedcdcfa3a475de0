// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: step records only, one JSON object a line, floats that read back to the same bits.
//
// Threads: one. Ownership: owns its file. Blocking: writes each line. Errors: the constructor throws Error naming the
// file; write() throws Error for a record that JSON cannot hold. A record that the file does not take is counted, and
// its cause goes to the observer once (append_file.hpp).
#pragma once

#include <filesystem>

#include "report/append_file.hpp"
#include "report/step_record.hpp"

namespace triax::report {

class MetricsFile {
 public:
  /// Appends to the file; creates it if there is none.
  MetricsFile(const std::filesystem::path& file, AppendFile::Observer observer);
  void write(const StepRecord& record);
  /// Looks whether the file was deleted or moved.
  void check() { file_.check(); }

  /// Where it is now.
  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t records() const { return records_; } // that were to be written
  std::int64_t missing() const { return file_.lost_lines() + file_.deleted_lines(); }

 private:
  AppendFile file_;
  std::int64_t records_ = 0;
};

/// The line of a record, without its newline.
std::string to_json(const StepRecord& record);

} // namespace triax::report
