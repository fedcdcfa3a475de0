// SPDX-License-Identifier: Apache-2.0
// A file that grows by whole lines or records: metrics.jsonl, the logs, event files. A line that cannot be written
// completely is removed, so readers never see half a line, and the next line is valid.
//
// Ownership: owns its descriptor. Blocking: writes. Errors: the constructor throws Error. Later functions do not throw:
// append() returns false, and the observer gets each cause once, as an Error with file, reason and next step.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/error.hpp"

namespace triax::os {

class AppendFile {
 public:
  /// `lost`: lines are or may be missing in the file; else the file was moved, and lines go to its new location.
  using Observer = std::function<void(const Error& problem, bool lost)>;

  /// Creates the file if it does not exist; never truncates it. Throws Error with a file that cannot be opened.
  AppendFile(std::filesystem::path file, Observer observer);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Writes `line` and a newline, or nothing. `what` names the line in messages: "the record of step 7".
  bool append(std::string_view line, std::string_view what);
  /// Writes a record as it is, or nothing. It counts as a line.
  bool append_bytes(std::string_view record, std::string_view what);
  /// Checks whether the file was deleted, truncated or moved. A deleted file is created again as soon as its folder
  /// exists.
  void check();

  /// The current location of the file.
  const std::filesystem::path& path() const { return path_; }
  /// Lines that could not be written.
  std::int64_t lost_lines() const { return lost_lines_; }
  /// Lines that were written, and deleted or truncated with the file.
  std::int64_t deleted_lines() const { return deleted_lines_; }

 private:
  bool open(int flags);
  int write_all(std::string_view bytes);
  void on_deleted();
  void on_truncated(off_t size);
  void on_moved();
  void report(const std::string& cause, const Error& problem, bool lost);

  std::filesystem::path path_;
  const Observer observer_;
  int descriptor_ = -1;
  bool regular_ = false;       // else a device or a FIFO, which cannot be truncated, deleted or moved
  std::optional<off_t> whole_; // the size to restore, if a partial line could not be removed
  off_t end_ = 0;              // size of the file after the last line
  std::int64_t lines_ = 0;     // written by this object and still in the file
  std::int64_t lost_lines_ = 0, deleted_lines_ = 0;
  std::string buffer_;
  std::vector<std::string> reported_; // causes
};

} // namespace triax::os
