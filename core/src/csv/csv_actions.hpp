// SPDX-License-Identifier: Apache-2.0
// Reads the cells of a schedule's CSV file as actions of any kind, and derives the stage map. Shared by the readers of
// compute-only and lowered files.
//
// Ownership: actions hold views of the text from which they were read. Blocking: read_file() reads a file. Errors:
// collected as Problems, which keeps the first ones.
//
// Compiled into libtriax_core, for plugins, and into the engine, which also reads lowered files; exported by neither.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/scheduler.hpp"

namespace triax::csv {

/// A position in the file; both numbers start at 1.
struct Location {
  int line = 0, cell = 0;
};

struct Cell {
  Location at;
  std::string_view text; // without surrounding blanks and quotes
};

/// For example "3SEND_F1". A stage or microbatch that is not written is -1; slice and replica are then 0.
struct CellAction {
  Cell cell;
  std::string_view kind;
  int stage = -1, microbatch = -1, slice = 0, replica = 0;
};
using Rows = std::vector<std::vector<CellAction>>; // by line

/// The errors found in a file.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  /// "rows.csv: message"
  void add(std::string_view message, std::string_view hint = {}) { keep(file_, message, hint); }
  /// "rows.csv:2: message"
  void add(int line, std::string_view message, std::string_view hint = {}) {
    keep(file_ + ":" + std::to_string(line), message, hint);
  }
  /// "rows.csv:2:5: 3G1 message"
  void add(const Cell& cell, std::string_view message, std::string_view hint = {});

  bool empty() const { return count_ == 0; }
  /// Number of all problems; texts() has only the first ones.
  std::size_t count() const { return count_; }
  const std::vector<std::string>& texts() const { return texts_; }
  const std::string& file() const { return file_; }

 private:
  void keep(const std::string& where, std::string_view message, std::string_view hint);

  std::string file_;
  std::size_t count_ = 0;
  std::vector<std::string> texts_;
  std::string last_hint_; // a repeated hint is not printed again
};

/// Contents of a file. Empty, with a problem added, if the file cannot be read or is larger than any schedule.
std::string read_file(const std::filesystem::path& file, Problems& problems);

/// Leaves out empty cells and empty lines at the end. If the file is not text, the first invalid byte is the only
/// problem. `check` may add problems for an action.
using Check = std::function<void(const CellAction& action, Problems& problems)>;
Rows read_actions(std::string_view csv, Problems& problems, const Check& check);

struct Placement {
  PipelineShape shape;
  std::vector<int> stage_rank;
};

/// Stage map and shape; adds problems if ranks or numbers are inconsistent. Call it only for rows without problems.
Placement make_placement(const Rows& rows, Problems& problems);

inline bool is_compute(std::string_view kind) {
  return kind == "F" || kind == "B" || kind == "I" || kind == "W";
}
/// Whether an action has a stage and a microbatch; otherwise adds problems.
bool is_whole(const CellAction& action, Problems& problems);
/// Converts an action for which is_whole() is true.
Action compute_action(const CellAction& action);

/// Adds the problem that the kind of an action is not allowed. PyTorch's own kinds have their own message; others have
/// `message`.
void refuse_kind(const CellAction& action, std::string_view message, Problems& problems);

} // namespace triax::csv
