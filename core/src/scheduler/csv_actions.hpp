// The cells of a schedule's CSV file as actions that are not yet told apart by kind, and the placement that they give:
// what compute-only and lowered files have in common.
//
// Threads: any. Ownership: actions hold views into the text they were read from. Blocking: read_file() reads. Errors:
// told as problems, of which the first are kept.
//
// Compiled into libtriax_core, for plugins, and into the engine, which reads lowered files too; exported by neither.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/scheduler.hpp"

namespace triax::csv {

/// Where something stands in the file, both from 1.
struct Location {
  int line = 0, cell = 0;
};

struct Cell {
  Location at;
  std::string_view text; // without the blanks and quotes around it
};

/// "3SEND_F1"; what is not written is -1, of slice and replica 0.
struct CellAction {
  Cell cell;
  std::string_view kind;
  int stage = -1, microbatch = -1, slice = 0, replica = 0;
};
using Rows = std::vector<std::vector<CellAction>>; // by line

/// What is wrong with a file.
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
  /// How many there are; texts() has the first of them.
  std::size_t count() const { return count_; }
  const std::vector<std::string>& texts() const { return texts_; }
  const std::string& file() const { return file_; }

 private:
  void keep(const std::string& where, std::string_view message, std::string_view hint);

  std::string file_;
  std::size_t count_ = 0;
  std::vector<std::string> texts_;
  std::string last_hint_; // said once where it is the same again
};

/// What a file holds; empty with a problem if it cannot be read, or is larger than a schedule can be.
std::string read_file(const std::filesystem::path& file, Problems& problems);

/// Empty cells are left out; lines that are empty at the end are none. Of a file that is no text the first byte that
/// shows it is the only problem. `check` may have more against an action.
using Check = std::function<void(const CellAction& action, Problems& problems)>;
Rows read_actions(std::string_view csv, Problems& problems, const Check& check);

struct Placement {
  PipelineShape shape;
  std::vector<int> stage_rank;
};

/// Of rows without problems.
Placement place(const Rows& rows, Problems& problems);

inline bool is_compute(std::string_view kind) {
  return kind == "F" || kind == "B" || kind == "I" || kind == "W";
}
/// Of a compute action: whether it names a stage and a microbatch.
bool is_whole(const CellAction& action, Problems& problems);
/// As schedulers make it, of one that is whole.
Action compute_action(const CellAction& action);

/// Tells why a kind cannot be read; `known`: those that can.
void refuse_kind(const CellAction& action, std::string_view known, Problems& problems);

} // namespace triax::csv
