// SPDX-License-Identifier: Apache-2.0
// The measured timeline of a rank's step in the run's folder, timeline-rank-N.json: its passes, other actions,
// communicator calls and waits. All times are in ms of its machine's steady clock.
//
// Threads: pure except for the file. Blocking: reads and writes files. Errors: Error with the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "schedule/measured.hpp"

namespace triax::report {

/// The machine of the steady clock, which restarts at every boot.
struct Machine {
  std::string host, boot;
  bool operator==(const Machine&) const = default;
};
Machine this_machine();

/// A call of a communicator.
struct MeasuredCall {
  std::string call;        // "all_reduce", "send", "receive"...; "exchange" with several peers
  std::string axis;        // of its group
  std::string action;      // that posted it: "0SEND_F3"
  int peer = -1;           // of a send or receive: rank number in the run
  std::uint64_t bytes = 0; // of this rank's tensors: the larger of input and output
  double posted = 0, completed = 0;
  bool awaited = false; // the rank does not compute between post and completion
  bool operator==(const MeasuredCall&) const = default;
};

/// A time in which the rank waited.
struct MeasuredWait {
  double start = 0, end = 0;
  std::string reason; // an action or a call: "0RECV_B3", "all_reduce of tensor"
  int peer = -1;      // the rank it waited for
  bool operator==(const MeasuredWait&) const = default;
};

struct RankTimeline {
  int rank = 0; // of the run
  std::int64_t step = 0;
  std::vector<schedule::MeasuredPass> passes;
  int ranks = 1; // of the run
  Machine machine{};
  double start = 0, end = 0;                     // of the step, from its data in place to the end of its last action
  std::vector<schedule::MeasuredPass> actions{}; // actions that are not passes; for a transfer, when it was posted
  std::vector<MeasuredCall> calls{};             // in the order of their posts
  std::vector<MeasuredWait> waits{};             // ascending, disjoint, within the step
};

/// One entry per line. The file is written atomically.
void write_timeline(const std::filesystem::path& folder, const RankTimeline& timeline);
/// Lists that are missing in the file are empty; the passes are required.
RankTimeline read_timeline(const std::filesystem::path& folder, int rank);

/// The files of all ranks, in any order.
std::vector<std::filesystem::path> timelines_in(const std::filesystem::path& folder);

} // namespace triax::report
