// SPDX-License-Identifier: Apache-2.0
// One side of a comparison: a run of `triax train` in a separate process, which takes turns with the other side.
//
// Threads: one, which must live as long as the side. Ownership: owns the process, which ends with the object. Blocking:
// until the side waits for its next turn. Errors: SideEnded if the process ends instead; Stopped; Error for files that
// cannot be read or written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/turn_server.hpp"
#include "os/child_process.hpp"
#include "report/timeline_file.hpp"
#include "triax/error.hpp"

namespace triax::compare {

struct SideRequest {
  std::string name; // "A" or "B"
  std::vector<os::Variable> variables;
  std::filesystem::path folder; // of the run
  std::string file;             // the TOML
  int ranks = 1;
  double silent_s = 1e9;                 // how long it may be without a step or output
  std::function<bool()> is_stopped = {}; // asked while the side runs: whether the comparison ends now; may be empty
};

/// The comparison has been stopped from outside.
class Stopped : public Error {
 public:
  Stopped() : Error("the comparison was stopped", "") {}
};

/// A side's process has ended before the comparison.
class SideEnded : public Error {
 public:
  SideEnded(const std::string& message, const std::string& where, const std::string& hint, bool refused)
      : Error(message, where, hint), refused_(refused) {}
  bool refused() const { return refused_; } // it has not begun to train

 private:
  bool refused_;
};

/// A step as the side's metrics file has it.
struct SideStep {
  std::int64_t step = 0;
  double loss = 0, grad_norm = 0, step_ms = 0; // loss and norm: NaN if the record has none
};

class Side {
 public:
  /// Starts the process, and waits until all its ranks wait for their first turn.
  explicit Side(SideRequest request);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// Runs this number of steps and returns their records. `timeline`: the ranks record the last of them.
  std::vector<SideStep> run(std::int64_t steps, bool timeline = false);
  /// Ends the process. Throws SideEnded if its status is not 0.
  void end();

  /// Steps that were done when it started: of the checkpoint that it began with.
  std::int64_t steps_at_start() const { return first_; }
  /// The reports of the ranks at the end of the last turn.
  const std::vector<report::WaitingRank>& ranks() const { return ranks_; }
  /// The largest resident memory of all processes of the side, so far, in bytes.
  std::uint64_t peak_resident() const;
  /// By rank, of the last turn with a timeline.
  std::vector<report::RankTimeline> timelines() const;

 private:
  void await_turn();
  void take_output();
  void check_silence();
  void check_stopped() const;
  [[noreturn]] void report_end();
  std::vector<SideStep> new_steps();

  const SideRequest request_;
  std::ofstream log_;
  std::string last_output_; // the last lines
  TurnServer server_;
  std::optional<os::Child> child_;
  std::vector<report::WaitingRank> ranks_;
  std::uintmax_t records_bytes_ = 0;       // of the metrics file
  Clock::time_point heard_ = Clock::now(); // when it last had a record or output
  std::int64_t first_ = 0, done_ = 0;      // steps that were done at the start, and that are done now
  std::int64_t records_read_ = 0;          // bytes of the metrics file
};

} // namespace triax::compare
