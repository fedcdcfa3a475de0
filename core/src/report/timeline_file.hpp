// When a rank's passes of one step ran, as a file of the run's folder: timeline-rank-N.json.
//
// Threads: pure but for the file. Ownership: values. Blocking: reads and writes files. Errors: Error naming the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "schedule/measured.hpp"

namespace triax::report {

/// Whose steady clock the times are of: it begins anew with each boot.
struct Machine {
  std::string host, boot;
  bool operator==(const Machine&) const = default;
};
Machine this_machine();

struct RankTimeline {
  int rank = 0; // of all ranks
  std::int64_t step = 0;
  std::vector<schedule::MeasuredPass> passes;
  int ranks = 1; // of the run
  Machine machine{};
};

/// A line to a pass.
void write_timeline(const std::filesystem::path& folder, const RankTimeline& timeline);
RankTimeline read_timeline(const std::filesystem::path& folder, int rank);

/// Those of an earlier run.
void remove_timelines(const std::filesystem::path& folder);

} // namespace triax::report
