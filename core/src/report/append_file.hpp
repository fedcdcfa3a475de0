// SPDX-License-Identifier: Apache-2.0
// A file that grows by whole lines: metrics.jsonl and the logs. A line that the file system does not take is removed
// again, so a reader never meets half a line, and the next line continues the file.
//
// Threads: one. Ownership: owns its descriptor. Blocking: writes. Errors: the constructor throws Error; later nothing
// is thrown: append() returns false, and each cause goes once to the observer as an Error with file, reason and next
// step.
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

namespace triax::report {

class AppendFile {
 public:
  /// `lost`: something cannot be or is not in the file; else the file was moved, and its lines go to the new place.
  using Observer = std::function<void(const Error& problem, bool lost)>;

  /// Creates the file if there is none, and never truncates it. Throws Error naming a file that cannot be opened.
  AppendFile(std::filesystem::path file, Observer observer);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Writes `line` and a newline, or nothing. `what` names the line in a message: "the record of step 7".
  bool append(std::string_view line, std::string_view what);
  /// Looks whether the file was deleted or moved. A deleted file is created again as soon as its folder is there.
  void check();

  /// Where the file is now.
  const std::filesystem::path& path() const { return path_; }
  /// Lines that were not written.
  std::int64_t lost_lines() const { return lost_lines_; }
  /// Lines that were written, and deleted with the file.
  std::int64_t deleted_lines() const { return deleted_lines_; }

 private:
  bool open(int flags);
  int write_all(std::string_view bytes);
  void on_deleted();
  void on_moved();
  void tell(const std::string& cause, const Error& problem, bool lost);

  std::filesystem::path path_;
  const Observer observer_;
  int descriptor_ = -1;
  bool regular_ = false;       // else a device or a FIFO: nothing to truncate, delete or move
  std::optional<off_t> whole_; // the size to go back to, where a part of a line could not be removed
  std::int64_t lines_ = 0;     // in the file, written by this object
  std::int64_t lost_lines_ = 0, deleted_lines_ = 0;
  std::string buffer_;
  std::vector<std::string> told_; // causes
};

} // namespace triax::report
