// A schedule's CSV file, as csv.hpp writes it or PyTorch does: compute actions alone, or a lowered program.
//
// Threads: any. Ownership: values. Blocking: read_csv_file() reads. Errors: what is wrong is told as problems.
// Whether the actions are those of a step, and come to their ends, is not asked here: that is verify()'s to say.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/program.hpp"
#include "triax/scheduler.hpp"

namespace triax::schedule {

struct CsvFile {
  /// An action, and where it stands, both from 1.
  struct PlacedAction {
    Kind kind = Kind::forward;
    int stage = -1, microbatch = -1;
    int line = 0, cell = 0;
  };

  std::string name; // what messages call it
  PipelineShape shape;
  Schedule schedule;                              // its compute actions
  bool lowered = false;                           // it has other actions too
  std::vector<std::vector<PlacedAction>> actions; // all of them, by rank
  std::vector<std::string> problems; // if any, the rest says nothing; the first of them, each with its place
  std::size_t problem_count = 0;
};

CsvFile read_csv(std::string_view csv, const std::string& name);
/// Of a file; its path is the name.
CsvFile read_csv_file(const std::filesystem::path& file);

/// Of a lowered file: its actions in its order, with slots and waits that follow from them. A maximal run of sends and
/// receives is one set. Where it gathers, boundaries are scattered. Whatever the file holds, the programs can be given
/// to verify().
std::vector<Program> programs_of(const CsvFile& file);

} // namespace triax::schedule
