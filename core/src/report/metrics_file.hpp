// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: step records, one JSON object per line. Floats read back to the same bits.
//
// Ownership: owns its file. Blocking: writes each line. Errors: the constructor throws Error with the file; write()
// throws Error for a record that JSON cannot represent. A record that cannot be written is counted, and the observer
// gets its cause once (append_file.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "os/append_file.hpp"
#include "report/step_record.hpp"

namespace triax::report {

class MetricsFile {
 public:
  /// Appends to the file; creates it if it does not exist.
  MetricsFile(const std::filesystem::path& file, os::AppendFile::Observer observer);
  void write(const StepRecord& record);
  /// Checks whether the file was deleted or moved.
  void check() { file_.check(); }

  /// The current location of the file.
  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t records() const { return records_; } // number of records that should be in the file
  std::int64_t missing() const { return file_.lost_lines() + file_.deleted_lines(); }

 private:
  os::AppendFile file_;
  std::int64_t records_ = 0;
};

struct KeptRecords {
  std::string lines;          // empty if `is_whole_file`
  bool is_whole_file = false; // all of the file is kept
};
/// The records of a metrics file up to a step. Lines that are not records, and all after them, are not kept.
/// Throws Error if the file cannot be read.
KeptRecords records_up_to(const std::filesystem::path& file, std::int64_t step);

/// The records of a metrics file with the evaluation of `record` in the last one. No text if that is of another step,
/// or has an evaluation. Throws Error if the file cannot be read.
std::optional<std::string> with_evaluation(const std::filesystem::path& file, const StepRecord& record);

/// The line of a record, without newline.
std::string to_json(const StepRecord& record);

} // namespace triax::report
