// SPDX-License-Identifier: Apache-2.0
// The metrics of a run as an event file of TensorBoard.
//
// Each start of a run writes a new file, whose name is after those of earlier starts, as TensorBoard reads them. It
// begins with the step at which the run continues: TensorBoard then drops what earlier files have of later steps.
//
// Ownership: owns its file. Blocking: writes each record. Errors: none are thrown; a record that cannot be written is
// counted, and the observer gets its cause once (append_file.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/append_file.hpp"
#include "report/event_encoding.hpp"
#include "report/step_record.hpp"

namespace triax::report {

class EventFile {
 public:
  /// Creates the folder and a new file in it. `step`: the first step that will be written.
  EventFile(const std::filesystem::path& folder, std::int64_t step, os::AppendFile::Observer observer);
  void write(const StepRecord& record);
  /// Writes the evaluation of a step whose other values an earlier file has.
  void write_evaluation(const StepRecord& record);
  /// Checks whether the file was deleted or moved.
  void check();

  /// Where the file is: its folder may have been moved.
  std::filesystem::path folder() const { return file_ ? file_->path().parent_path() : folder_; }
  /// Number of events that are not in the file.
  std::int64_t missing() const;

 private:
  void write(std::int64_t step, const std::vector<Scalar>& scalars, std::string_view what);
  void append(const std::string& event, const std::string& what);

  const std::filesystem::path folder_;
  os::AppendFile::Observer observer_;
  std::optional<os::AppendFile> file_; // empty: it could not be created
  std::int64_t unwritten_ = 0;         // records without a file
};

} // namespace triax::report
