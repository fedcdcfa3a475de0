// SPDX-License-Identifier: Apache-2.0
// Reads a schedule's CSV file, from program_csv.hpp or PyTorch: compute actions only, or a lowered program.
//
// Threads: any. Blocking: read_csv_file() reads a file. Errors: returned as problems.
// Does not check whether the actions are complete and can finish; verify() does.
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
  /// An action and its position in the file; both numbers start at 1.
  struct LocatedAction {
    Kind kind = Kind::forward;
    int stage = -1, microbatch = -1;
    int line = 0, cell = 0;
  };

  std::string name; // name in messages
  PipelineShape shape;
  Schedule schedule;                               // the compute actions
  bool lowered = false;                            // the file also has other actions
  std::vector<std::vector<LocatedAction>> actions; // all actions, by rank
  std::vector<std::string> problems;               // the first ones, with positions; if any, other fields are not valid
  std::size_t problem_count = 0;
};

CsvFile read_csv(std::string_view csv, const std::string& name);
/// Reads a file; its path is the name in messages.
CsvFile read_csv_file(const std::filesystem::path& file);

/// Programs of a lowered file: its actions in their order, with slots and waits derived from it. A maximal run of sends
/// and receives is one set. If the file has gathers of boundaries, these
/// are scattered, and if it has gathers of parameters, the optimizer's state is divided (not the gradients: a
/// file has no slots). The programs can be passed to
/// verify() whatever the file contains.
std::vector<Program> programs_of(const CsvFile& file);

} // namespace triax::schedule
