// SPDX-License-Identifier: Apache-2.0
// The timeline of a rank's step as a file of the run's folder, timeline-rank-N.json: its passes, the other actions of
// its program, what it posted to its communicators, and when it waited. All times are in ms of its machine's steady
// clock.
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

/// A call of a communicator.
struct MeasuredCall {
  std::string call;        // "all_reduce", "send", "receive"...; "exchange" of several peers
  std::string axis;        // of its group
  std::string action;      // that posted it: "0SEND_F3"
  int peer = -1;           // of a send or receive: the rank of the run
  std::uint64_t bytes = 0; // of this rank's tensors, in or out, whichever are more
  double posted = 0, completed = 0;
  bool awaited = false; // the rank computes nothing from the post to the completion
  bool operator==(const MeasuredCall&) const = default;
};

/// The rank had nothing to compute.
struct MeasuredWait {
  double start = 0, end = 0;
  std::string reason; // an action or a call: "0RECV_B3", "all_reduce of tensor"
  int peer = -1;      // that it waited for: a rank of the run
  bool operator==(const MeasuredWait&) const = default;
};

struct RankTimeline {
  int rank = 0; // of all ranks
  std::int64_t step = 0;
  std::vector<schedule::MeasuredPass> passes;
  int ranks = 1; // of the run
  Machine machine{};
  double start = 0, end = 0;                     // of the step, from its data in place to its last action's completion
  std::vector<schedule::MeasuredPass> actions{}; // that are not passes; of a transfer, when it was posted
  std::vector<MeasuredCall> calls{};             // in the order of their posts
  std::vector<MeasuredWait> waits{};             // in their order, disjoint, within the step
};

/// A line to an entry. The file appears whole or not at all.
void write_timeline(const std::filesystem::path& folder, const RankTimeline& timeline);
/// Lists that the file does not have are empty, but for the passes.
RankTimeline read_timeline(const std::filesystem::path& folder, int rank);

/// The files of all ranks, in no order.
std::vector<std::filesystem::path> timelines_in(const std::filesystem::path& folder);

} // namespace triax::report
