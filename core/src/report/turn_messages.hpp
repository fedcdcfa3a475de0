// SPDX-License-Identifier: Apache-2.0
// The messages between ranks of a run that takes turns with another (train/turns.hpp) and the comparing process, a line
// of JSON each.
//
// Threads: pure functions. Errors: Error for a line that is not such a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/step_record.hpp"

namespace triax::report {

/// A plugin that a rank uses.
struct PluginFile {
  std::string role; // "comm.tensor", "kernels"
  std::string name, version, file;
};

/// A rank that waits for its turn.
struct WaitingRank {
  int rank = 0;
  std::int64_t process = 0;       // its process id; ranks that are threads share one
  std::int64_t next_step = 1;     // the step that it will do next
  bool on_host = true;            // its device is the host, so that timelines measure passes
  std::uint64_t memory_bytes = 0; // of its arenas
  std::int64_t tokens_per_sample = 0;
  std::vector<GroupTraffic> traffic;
  std::vector<PluginFile> plugins; // of rank 0, before its first step; else empty
};

/// The answer.
struct Turn {
  std::int64_t until = 0;    // the last step of the turn; smaller than the next step: the run ends
  std::int64_t timeline = 0; // the step whose timeline the ranks record; 0: none
};

std::string to_line(const WaitingRank& rank);
WaitingRank read_waiting_rank(std::string_view line);

std::string to_line(const Turn& turn);
Turn read_turn(std::string_view line);

} // namespace triax::report
